# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Set-up of memory descriptors.  See `descriptor.pxd`."""


cdef void make(MemoryDescriptor *descriptor, int kind, int operation, int save, int options) noexcept nogil:
    descriptor.kind = kind
    descriptor.operation = operation
    descriptor.save = save
    descriptor.options = options
    descriptor.overlay = NO_OVERLAY
    descriptor.start = NULL
    descriptor.length = 0
    descriptor.offset = 0
    descriptor.buffers = NULL
    descriptor.buffer_count = 0
    descriptor.current = 0


cdef void make_single(MemoryDescriptor *descriptor, char *start, uint64_t length, int operation, int save,
                      int options) noexcept nogil:
    make(descriptor, SINGLE, operation, save, options)
    descriptor.start = start
    descriptor.length = length


cdef void make_independent(MemoryDescriptor *descriptor, Buffer *buffers, uint32_t count, int operation, int save,
                           int options) noexcept nogil:
    make(descriptor, INDEPENDENT, operation, save, options)
    descriptor.buffers = buffers
    descriptor.buffer_count = count


cdef void make_combined(MemoryDescriptor *descriptor, Buffer *buffers, uint32_t count, int operation,
                        int options) noexcept nogil:
    make(descriptor, COMBINED, operation, SAVE_BODY, options)
    descriptor.buffers = buffers
    descriptor.buffer_count = count


cdef void make_dynamic(MemoryDescriptor *descriptor, char *start, uint64_t length, int save, int options) noexcept nogil:
    make(descriptor, DYNAMIC, WRITE, save, options)
    descriptor.start = start
    descriptor.length = length


cdef void make_overlay(MemoryDescriptor *descriptor, const MemoryDescriptor *below, int32_t index, int save,
                       int options) noexcept nogil:
    make(descriptor, below.kind, below.operation, save, options)
    descriptor.overlay = index
