"""The Message Passing Interface, with mpi4py's names and semantics.

Importing this module initialises MPI, and the end of the program finalises it; `rc` holds the options (see
`ompy.mpi.options`).  The names come from `ompy.mpi`, one module for each noun.
"""

# Names are imported to be handed on.
# ruff: noqa: F401, F403

from __future__ import annotations

import gc as _gc

# What is made meanwhile stays: looking for garbage in it takes a fifth of the time.
_collects = _gc.isenabled()
_gc.disable()
try:
    from ompy.core.errors import (
        ERR_ABI,
        ERR_ACCESS,
        ERR_AMODE,
        ERR_ARG,
        ERR_ASSERT,
        ERR_BAD_FILE,
        ERR_BASE,
        ERR_BUFFER,
        ERR_COMM,
        ERR_CONVERSION,
        ERR_COUNT,
        ERR_DIMS,
        ERR_DISP,
        ERR_DUP_DATAREP,
        ERR_ERRHANDLER,
        ERR_FILE,
        ERR_FILE_EXISTS,
        ERR_FILE_IN_USE,
        ERR_GROUP,
        ERR_IN_STATUS,
        ERR_INFO,
        ERR_INFO_KEY,
        ERR_INFO_NOKEY,
        ERR_INFO_VALUE,
        ERR_INTERN,
        ERR_IO,
        ERR_KEYVAL,
        ERR_LASTCODE,
        ERR_LOCKTYPE,
        ERR_NAME,
        ERR_NO_MEM,
        ERR_NO_SPACE,
        ERR_NO_SUCH_FILE,
        ERR_NOT_SAME,
        ERR_OP,
        ERR_OTHER,
        ERR_PENDING,
        ERR_PORT,
        ERR_PROC_ABORTED,
        ERR_PROC_FAILED,
        ERR_PROC_FAILED_PENDING,
        ERR_QUOTA,
        ERR_RANK,
        ERR_READ_ONLY,
        ERR_REQUEST,
        ERR_REVOKED,
        ERR_RMA_ATTACH,
        ERR_RMA_CONFLICT,
        ERR_RMA_FLAVOR,
        ERR_RMA_RANGE,
        ERR_RMA_SHARED,
        ERR_RMA_SYNC,
        ERR_ROOT,
        ERR_SERVICE,
        ERR_SESSION,
        ERR_SIZE,
        ERR_SPAWN,
        ERR_TAG,
        ERR_TOPOLOGY,
        ERR_TRUNCATE,
        ERR_TYPE,
        ERR_UNKNOWN,
        ERR_UNSUPPORTED_DATAREP,
        ERR_UNSUPPORTED_OPERATION,
        ERR_VALUE_TOO_LARGE,
        ERR_WIN,
        SUCCESS,
    )
    from ompy.mpi.address import *
    from ompy.mpi.attributes import *
    from ompy.mpi.buffered import BSEND_OVERHEAD, Attach_buffer, Detach_buffer, Flush_buffer, Iflush_buffer
    from ompy.mpi.c_interface import c_interface as __pyx_capi__  # for extension modules in C
    from ompy.mpi.clock import Wtick, Wtime
    from ompy.mpi.comm import *
    from ompy.mpi.constants import ANY_SOURCE, ANY_TAG, PROC_NULL, ROOT, UNDEFINED
    from ompy.mpi.contexts import _commctx_inter, _commctx_intra
    from ompy.mpi.datarep import *
    from ompy.mpi.datatype import *
    from ompy.mpi.datatype import _datatype_create, _datatype_decode, _typealign, _typecode, _typedict, _typedict_c, _typedict_f
    from ompy.mpi.description import *
    from ompy.mpi.dynamic_processes import *
    from ompy.mpi.environment import *
    from ompy.mpi.environment import _set_abort_status
    from ompy.mpi.environment import start as _start
    from ompy.mpi.errhandler import *
    from ompy.mpi.error_codes import *
    from ompy.mpi.exceptions import Exception
    from ompy.mpi.file import *
    from ompy.mpi.file_access import *
    from ompy.mpi.fortran_kinds import *
    from ompy.mpi.group import *
    from ompy.mpi.info import *
    from ompy.mpi.inspection import _addressof, _handleof, _sizeof
    from ompy.mpi.intercomm import *
    from ompy.mpi.intracomm import *
    from ompy.mpi.memory import Alloc_mem, Free_mem, buffer, memory
    from ompy.mpi.message import MESSAGE_NO_PROC, MESSAGE_NULL, Message
    from ompy.mpi.one_sided import *
    from ompy.mpi.op import *
    from ompy.mpi.options import rc
    from ompy.mpi.pickling import Pickle, pickle
    from ompy.mpi.point_to_point import _comm_lock, _comm_lock_table
    from ompy.mpi.request import REQUEST_NULL, Grequest, Prequest, Request
    from ompy.mpi.sentinels import BOTTOM, BUFFER_AUTOMATIC, IN_PLACE, BottomType, BufferAutomaticType, InPlaceType
    from ompy.mpi.session import *
    from ompy.mpi.status import F_ERROR, F_SOURCE, F_STATUS_SIZE, F_TAG, Status
    from ompy.mpi.topocomm import *
    from ompy.mpi.topology import *
    from ompy.mpi.window import *

    _start()
finally:
    if _collects:
        # Frozen and thawed, all of it is old: otherwise the next object that is made would have it looked through at once.
        if not _gc.get_freeze_count():
            _gc.freeze()
            _gc.unfreeze()
        _gc.enable()
    del _gc

# No `__getattr__` here: the interpreter looks every `MPI.SUM` of a program up three times as slowly in a module that has one.
