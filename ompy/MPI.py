"""The Message Passing Interface, with mpi4py's names and semantics.

Importing this module initialises MPI, and the end of the program finalises it; `rc` holds the options (see
`ompy.mpi.options`).  The names come from `ompy.mpi`, one module for each noun.
"""

from __future__ import annotations

from ompy.core import errors as _errors
from ompy.mpi import attributes as _attributes
from ompy.mpi import contexts as _contexts
from ompy.mpi import datatype as _datatype
from ompy.mpi import environment as _environment
from ompy.mpi.address import *
from ompy.mpi.attributes import *
from ompy.mpi.buffered import BSEND_OVERHEAD, Attach_buffer, Detach_buffer, Flush_buffer, Iflush_buffer
from ompy.mpi.clock import Wtick, Wtime
from ompy.mpi.comm import *
from ompy.mpi.constants import ANY_SOURCE, ANY_TAG, PROC_NULL, ROOT, UNDEFINED
from ompy.mpi.contexts import _comm_lock, _comm_lock_table, _commctx_inter, _commctx_intra
from ompy.mpi.datatype import *
from ompy.mpi.datatype import _datatype_create, _datatype_decode, _typealign, _typecode, _typedict, _typedict_c, _typedict_f
from ompy.mpi.environment import *
from ompy.mpi.environment import abort as _abort
from ompy.mpi.errhandler import *
from ompy.mpi.error_codes import *
from ompy.mpi.exceptions import Exception
from ompy.mpi.file import *
from ompy.mpi.group import *
from ompy.mpi.handle import _addressof, _handleof, _sizeof
from ompy.mpi.info import *
from ompy.mpi.intercomm import *
from ompy.mpi.intracomm import *
from ompy.mpi.memory import Alloc_mem, Free_mem, buffer, memory
from ompy.mpi.message import MESSAGE_NO_PROC, MESSAGE_NULL, Message
from ompy.mpi.op import *
from ompy.mpi.options import rc
from ompy.mpi.pickling import Pickle, pickle
from ompy.mpi.request import REQUEST_NULL, Grequest, Prequest, Request
from ompy.mpi.sentinels import BOTTOM, BUFFER_AUTOMATIC, IN_PLACE, BottomType, BufferAutomaticType, InPlaceType
from ompy.mpi.session import *
from ompy.mpi.status import F_ERROR, F_SOURCE, F_STATUS_SIZE, F_TAG, Status
from ompy.mpi.topocomm import *
from ompy.mpi.topology import *
from ompy.mpi.window import *

globals().update({name: value for name, value in vars(_errors).items() if name.startswith("ERR_") or name == "SUCCESS"})

_environment.start()
