# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# cython: auto_pickle=False
# distutils: extra_compile_args=-Os
"""MPI objects for extension modules in C and Cython: the functions `PyMPI<Type>_New` and `PyMPI<Type>_Get` of mpi4py.

`New` makes an object from a handle's integer (the record of a status), `Get` gives the address of an object's.  They are in
`ompy.MPI.__pyx_capi__`, as capsules named by their signature, which is where Cython's `cimport` and mpi4py's headers look.
"""

from cpython.pycapsule cimport PyCapsule_New

from ompy.core.status cimport StatusRecord
from ompy.mpi.handle cimport Handle, expose
from ompy.mpi.status cimport Status

from ompy.mpi.comm import Comm
from ompy.mpi.datatype import Datatype
from ompy.mpi.errhandler import Errhandler
from ompy.mpi.file import File
from ompy.mpi.group import Group
from ompy.mpi.info import Info
from ompy.mpi.message import Message
from ompy.mpi.op import Op
from ompy.mpi.request import Request
from ompy.mpi.session import Session
from ompy.mpi.window import Win


cdef object new_comm(size_t handle):
    return Comm.fromhandle(handle)


cdef object new_datatype(size_t handle):
    return Datatype.fromhandle(handle)


cdef object new_errhandler(size_t handle):
    return Errhandler.fromhandle(handle)


cdef object new_file(size_t handle):
    return File.fromhandle(handle)


cdef object new_group(size_t handle):
    return Group.fromhandle(handle)


cdef object new_info(size_t handle):
    return Info.fromhandle(handle)


cdef object new_message(size_t handle):
    return Message.fromhandle(handle)


cdef object new_op(size_t handle):
    return Op.fromhandle(handle)


cdef object new_request(size_t handle):
    return Request.fromhandle(handle)


cdef object new_session(size_t handle):
    return Session.fromhandle(handle)


cdef object new_win(size_t handle):
    return Win.fromhandle(handle)


cdef size_t *get_handle(object handle) except NULL:
    return expose(<Handle?> handle)


cdef object new_status(const StatusRecord *record):
    cdef Status status = Status.__new__(Status)
    if record != NULL:
        status.record = record[0]
    return status


cdef StatusRecord *get_status(object status) except NULL:
    return &(<Status?> status).record


# A capsule points into its name, so that the names are kept.
cdef list names = []
c_interface = {}


cdef int export(str kind, str argument, void *new, void *get) except -1:
    names.append(f"PyObject *({argument})".encode())
    c_interface[f"PyMPI{kind}_New"] = PyCapsule_New(new, names[len(names) - 1], NULL)
    names.append(f"MPI_{kind} *(PyObject *)".encode())
    c_interface[f"PyMPI{kind}_Get"] = PyCapsule_New(get, names[len(names) - 1], NULL)
    return 0


export("Comm", "MPI_Comm", <void *> new_comm, <void *> get_handle)
export("Datatype", "MPI_Datatype", <void *> new_datatype, <void *> get_handle)
export("Errhandler", "MPI_Errhandler", <void *> new_errhandler, <void *> get_handle)
export("File", "MPI_File", <void *> new_file, <void *> get_handle)
export("Group", "MPI_Group", <void *> new_group, <void *> get_handle)
export("Info", "MPI_Info", <void *> new_info, <void *> get_handle)
export("Message", "MPI_Message", <void *> new_message, <void *> get_handle)
export("Op", "MPI_Op", <void *> new_op, <void *> get_handle)
export("Request", "MPI_Request", <void *> new_request, <void *> get_handle)
export("Session", "MPI_Session", <void *> new_session, <void *> get_handle)
export("Win", "MPI_Win", <void *> new_win, <void *> get_handle)
export("Status", "MPI_Status *", <void *> new_status, <void *> get_status)
