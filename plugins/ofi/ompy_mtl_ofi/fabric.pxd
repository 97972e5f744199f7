# libfabric's interface, as much of it as is used here (man pages fi_getinfo(3) to fi_tagged(3), version 1.9 of the interface).
#
# It is declared once more, so that this compiles where no header of libfabric's is, and the library is looked for when a rank
# asks for it.  Six functions are the library's own; everything else is called through tables of functions that hang on what
# these return, each of which begins with its size.  Structures of the library's are made and freed by it alone, and it only
# ever appends to them: what stands behind the last field named here does not matter.
from libc.stdint cimport uint32_t, uint64_t

cdef enum:
    INTERFACE_VERSION = 1 << 16 | 9

    # Waits for something else, and an error stands in the queue of completions (fi_errno(3)).
    TRY_AGAIN = 11
    NO_MEMORY = 12
    CANCELLED = 125
    ERROR_AVAILABLE = 259

    ENDPOINT_RELIABLE_DATAGRAM = 3
    THREADS_TAKE_TURNS = 3              # FI_THREAD_DOMAIN: one thread at a time is inside
    RESOURCES_ARE_MANAGED = 2           # FI_RM_ENABLED: a full queue is told of, not overrun
    FORMAT_TAGGED = 4
    WAIT_NONE = 0
    WAIT_DESCRIPTOR = 3
    COMMAND_GET_WAIT = 5
    COMMAND_ENABLE = 6

cdef extern from *:
    """
    #include <stdint.h>
    static const uint64_t ompy_ofi_tagged = UINT64_C(1) << 3;
    static const uint64_t ompy_ofi_receive = UINT64_C(1) << 10;
    static const uint64_t ompy_ofi_transmit = UINT64_C(1) << 11;
    static const uint64_t ompy_ofi_remote = UINT64_C(1) << 52;
    static const uint64_t ompy_ofi_context = UINT64_C(1) << 59;
    static const uint64_t ompy_ofi_context2 = UINT64_C(1) << 52;
    static const uint64_t ompy_ofi_send_after_send = UINT64_C(1) << 8;
    static const uint64_t ompy_ofi_unspecified = UINT64_MAX;
    """
    const uint64_t TAGGED "ompy_ofi_tagged"
    const uint64_t RECEIVE "ompy_ofi_receive"
    const uint64_t TRANSMIT "ompy_ofi_transmit"
    const uint64_t REMOTE "ompy_ofi_remote"                      # reaches other hosts
    const uint64_t MODE_CONTEXT "ompy_ofi_context"               # operations lend the provider some words
    const uint64_t MODE_CONTEXT2 "ompy_ofi_context2"
    const uint64_t SEND_AFTER_SEND "ompy_ofi_send_after_send"    # messages are matched in the order sent
    const uint64_t UNSPECIFIED "ompy_ofi_unspecified"            # no address, or any

# What every object begins with.
cdef struct fid:
    size_t fclass
    void *context
    fi_ops *ops

cdef struct fi_ops:
    size_t size
    int (*close)(fid *object) noexcept
    int (*bind)(fid *object, fid *other, uint64_t flags) noexcept
    int (*control)(fid *object, int command, void *argument) noexcept

cdef struct fi_tx_attr:
    uint64_t caps, mode, op_flags, msg_order, comp_order
    size_t inject_size, size

cdef struct fi_rx_attr:
    uint64_t caps, mode, op_flags, msg_order, comp_order
    size_t total_buffered_recv, size

cdef struct fi_ep_attr:
    int type
    uint32_t protocol, protocol_version
    size_t max_msg_size, msg_prefix_size, max_order_raw_size, max_order_war_size, max_order_waw_size
    uint64_t mem_tag_format

cdef struct fi_domain_attr:
    void *domain
    char *name
    int threading, control_progress, data_progress, resource_mgmt, av_type, mr_mode

cdef struct fi_fabric_attr:
    void *fabric
    char *name
    char *prov_name

cdef struct fi_info:
    fi_info *next
    uint64_t caps, mode
    uint32_t addr_format
    size_t src_addrlen, dest_addrlen
    void *src_addr
    void *dest_addr
    void *handle
    fi_tx_attr *tx_attr
    fi_rx_attr *rx_attr
    fi_ep_attr *ep_attr
    fi_domain_attr *domain_attr
    fi_fabric_attr *fabric_attr

cdef struct fid_fabric:
    fid fid
    fi_ops_fabric *ops

cdef struct fi_ops_fabric:
    size_t size
    int (*domain)(fid_fabric *fabric, fi_info *info, fid_domain **domain, void *context) noexcept
    void *passive_ep
    void *eq_open
    void *wait_open
    int (*trywait)(fid_fabric *fabric, fid **objects, int count) noexcept

cdef struct fid_domain:
    fid fid
    fi_ops_domain *ops

cdef struct fi_ops_domain:
    size_t size
    int (*av_open)(fid_domain *domain, fi_av_attr *attr, fid_av **av, void *context) noexcept
    int (*cq_open)(fid_domain *domain, fi_cq_attr *attr, fid_cq **cq, void *context) noexcept
    int (*endpoint)(fid_domain *domain, fi_info *info, fid_ep **ep, void *context) noexcept

cdef struct fi_av_attr:
    int type, rx_ctx_bits
    size_t count, ep_per_node
    const char *name
    void *map_addr
    uint64_t flags

cdef struct fid_av:
    fid fid
    fi_ops_av *ops

cdef struct fi_ops_av:
    size_t size
    int (*insert)(fid_av *av, const void *address, size_t count, uint64_t *handle, uint64_t flags, void *context) noexcept
    void *insertsvc
    void *insertsym
    int (*remove)(fid_av *av, uint64_t *handle, size_t count, uint64_t flags) noexcept

cdef struct fi_cq_attr:
    size_t size
    uint64_t flags
    int format, wait_obj, signaling_vector, wait_cond
    void *wait_set

cdef struct fi_cq_tagged_entry:
    void *op_context
    uint64_t flags
    size_t len
    void *buf
    uint64_t data, tag

cdef struct fi_cq_err_entry:
    void *op_context
    uint64_t flags
    size_t len
    void *buf
    uint64_t data, tag
    size_t olen
    int err, prov_errno
    void *err_data
    size_t err_data_size
    uint64_t src_addr                   # and more, as other versions of the interface have it
    uint64_t reserved[8]

cdef struct fid_cq:
    fid fid
    fi_ops_cq *ops

cdef struct fi_ops_cq:
    size_t size
    ssize_t (*read)(fid_cq *cq, void *entries, size_t count) noexcept
    void *readfrom
    ssize_t (*readerr)(fid_cq *cq, fi_cq_err_entry *entry, uint64_t flags) noexcept

cdef struct fid_ep:
    fid fid
    fi_ops_ep *ops
    fi_ops_cm *cm
    void *msg
    void *rma
    fi_ops_tagged *tagged

cdef struct fi_ops_ep:
    size_t size
    ssize_t (*cancel)(fid *object, void *context) noexcept

cdef struct fi_ops_cm:
    size_t size
    void *setname
    int (*getname)(fid *object, void *address, size_t *length) noexcept

cdef struct fi_ops_tagged:
    size_t size
    ssize_t (*recv)(fid_ep *ep, void *data, size_t length, void *desc, uint64_t source, uint64_t tag, uint64_t ignore,
                    void *context) noexcept
    void *recvv
    void *recvmsg
    ssize_t (*send)(fid_ep *ep, const void *data, size_t length, void *desc, uint64_t dest, uint64_t tag,
                    void *context) noexcept
    void *sendv
    void *sendmsg
    ssize_t (*inject)(fid_ep *ep, const void *data, size_t length, uint64_t dest, uint64_t tag) noexcept
