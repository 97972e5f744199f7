# What a rank uses of libpmix's binary interface: names, sizes and places as in the header files of OpenPMIx 3.1 to 6, which
# agree in all that stands here (`client.pyx` refuses other versions).  None of these files is needed, and nothing is linked.
#
#   pmix_info_t    key: 512 bytes | flags: 4 | gap: 4 | pmix_value_t: 32             552 bytes
#   pmix_value_t   type: 2 | gap: 6 | one of many: 24                                 32
#   pmix_pdata_t   pmix_proc_t: 260 | key: 512 | gap: 4 | pmix_value_t: 32           808
#   pmix_app_t     command, argv, env, folder: 8 each | count: 4 | gap: 4 | infos: 8 | number of them: 8     56
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef int pmix_status_t
ctypedef uint16_t pmix_data_type_t

cdef enum:
    MAX_NSLEN = 255
    MAX_KEYLEN = 511
    RANK_WILDCARD = 0xfffffffe  # of what is true of the whole job
    SCOPE_GLOBAL = 3            # of what is put: for every rank, on this host or not

cdef enum:  # pmix_status_t
    SUCCESS = 0
    ERR_NOT_FOUND = -46
    ERR_NOT_SUPPORTED = -47
    ERR_PARTIAL_SUCCESS = -52
    OPERATION_SUCCEEDED = -157  # at once, and nobody will be called back
    EVENT_ACTION_COMPLETE = -334
    ERR_PROC_ABORTED = -7
    ERR_PROC_REQUESTED_ABORT = -8
    ERR_PROC_ABORTING = -9
    ERR_LOST_CONNECTION = -61
    ERR_LOST_CONNECTION_TO_SERVER = -101
    EVENT_JOB_END = -145
    ERR_PROC_TERM_WO_SYNC = -200
    ERR_PROC_KILLED_BY_CMD = -400
    ERR_PROC_FAILED_TO_START = -401
    ERR_PROC_ABORTED_BY_SIG = -402
    ERR_PROC_SENSOR_BOUND_EXCEEDED = -403
    ERR_EXIT_NONZERO_TERM = -404

cdef enum:  # pmix_data_type_t
    TYPE_BOOL = 1
    TYPE_STRING = 3
    TYPE_SIZE = 4
    TYPE_INT = 6
    TYPE_INT8 = 7
    TYPE_INT16 = 8
    TYPE_INT32 = 9
    TYPE_INT64 = 10
    TYPE_UINT = 11
    TYPE_UINT8 = 12
    TYPE_UINT16 = 13
    TYPE_UINT32 = 14
    TYPE_UINT64 = 15
    TYPE_STATUS = 20
    TYPE_PROC = 22
    TYPE_BYTE_OBJECT = 27
    TYPE_PROC_RANK = 40

cdef struct pmix_proc_t:
    char nspace[256]
    uint32_t rank

cdef struct pmix_byte_object_t:
    char *bytes
    size_t size

cdef struct pmix_envar_t:  # the longest of a value's forms
    char *envar
    char *value
    char separator

cdef union pmix_value_data:
    uint8_t flag
    char *string
    size_t size
    int integer
    int8_t int8
    int16_t int16
    int32_t int32
    int64_t int64
    unsigned int uint
    uint8_t uint8
    uint16_t uint16
    uint32_t uint32
    uint64_t uint64
    pmix_status_t status
    pmix_proc_t *proc
    pmix_byte_object_t bo
    pmix_envar_t envar

cdef struct pmix_value_t:
    pmix_data_type_t type
    pmix_value_data data

cdef struct pmix_info_t:
    char key[512]
    uint32_t flags
    pmix_value_t value

cdef struct pmix_pdata_t:
    pmix_proc_t proc
    char key[512]
    pmix_value_t value

cdef struct pmix_app_t:
    char *cmd
    char **argv
    char **env
    char *cwd
    int maxprocs
    pmix_info_t *info
    size_t ninfo

# What libpmix calls, on its own thread.
ctypedef void (*pmix_op_cbfunc_t)(pmix_status_t status, void *context) noexcept nogil
ctypedef void (*pmix_value_cbfunc_t)(pmix_status_t status, pmix_value_t *value, void *context) noexcept nogil
ctypedef void (*pmix_lookup_cbfunc_t)(pmix_status_t status, pmix_pdata_t *data, size_t count, void *context) noexcept nogil
ctypedef void (*pmix_spawn_cbfunc_t)(pmix_status_t status, char *nspace, void *context) noexcept nogil
ctypedef void (*pmix_hdlr_reg_cbfunc_t)(pmix_status_t status, size_t reference, void *context) noexcept nogil
ctypedef void (*pmix_event_notification_cbfunc_fn_t)(
    pmix_status_t status, pmix_info_t *results, size_t count, pmix_op_cbfunc_t done, void *done_context, void *context
) noexcept nogil
ctypedef void (*pmix_notification_fn_t)(
    size_t reference, pmix_status_t status, const pmix_proc_t *source, pmix_info_t *info, size_t count,
    pmix_info_t *results, size_t results_count, pmix_event_notification_cbfunc_fn_t done, void *context
) noexcept nogil

# What a rank calls.
ctypedef const char *(*Get_version)() noexcept nogil
ctypedef const char *(*Error_string)(pmix_status_t status) noexcept nogil
ctypedef pmix_status_t (*Init)(pmix_proc_t *proc, pmix_info_t *info, size_t count) noexcept nogil
ctypedef pmix_status_t (*Finalize)(const pmix_info_t *info, size_t count) noexcept nogil
ctypedef pmix_status_t (*Abort)(int status, const char *message, pmix_proc_t *procs, size_t count) noexcept nogil
ctypedef pmix_status_t (*Put)(uint8_t scope, const char *key, pmix_value_t *value) noexcept nogil
ctypedef pmix_status_t (*Commit)() noexcept nogil
ctypedef pmix_status_t (*Fence_nb)(
    const pmix_proc_t *procs, size_t procs_count, const pmix_info_t *info, size_t count, pmix_op_cbfunc_t done, void *context
) noexcept nogil
ctypedef pmix_status_t (*Get_nb)(
    const pmix_proc_t *proc, const char *key, const pmix_info_t *info, size_t count, pmix_value_cbfunc_t done, void *context
) noexcept nogil
ctypedef pmix_status_t (*Publish_nb)(
    const pmix_info_t *info, size_t count, pmix_op_cbfunc_t done, void *context
) noexcept nogil
ctypedef pmix_status_t (*Lookup_nb)(
    char **keys, const pmix_info_t *info, size_t count, pmix_lookup_cbfunc_t done, void *context
) noexcept nogil
ctypedef pmix_status_t (*Unpublish_nb)(
    char **keys, const pmix_info_t *info, size_t count, pmix_op_cbfunc_t done, void *context
) noexcept nogil
ctypedef pmix_status_t (*Spawn_nb)(
    const pmix_info_t *info, size_t count, const pmix_app_t *apps, size_t apps_count, pmix_spawn_cbfunc_t done, void *context
) noexcept nogil
ctypedef pmix_status_t (*Register_event_handler)(
    pmix_status_t *codes, size_t codes_count, pmix_info_t *info, size_t count, pmix_notification_fn_t handler,
    pmix_hdlr_reg_cbfunc_t done, void *context
) noexcept nogil
