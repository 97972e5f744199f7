# Words that processes share, read and written whole and in order.
from libc.stdint cimport uint32_t, uint64_t

cdef extern from *:
    """
    static inline uint64_t ompy_acquire(const uint64_t *place) { return __atomic_load_n(place, __ATOMIC_ACQUIRE); }
    static inline void ompy_release(uint64_t *place, uint64_t value) { __atomic_store_n(place, value, __ATOMIC_RELEASE); }
    static inline uint32_t ompy_acquire32(const uint32_t *place) { return __atomic_load_n(place, __ATOMIC_ACQUIRE); }
    static inline void ompy_release32(uint32_t *place, uint32_t value) { __atomic_store_n(place, value, __ATOMIC_RELEASE); }
    static inline void ompy_add32(uint32_t *place, int change) { __atomic_fetch_add(place, change, __ATOMIC_SEQ_CST); }
    static inline int ompy_exchange_if32(uint32_t *place, uint32_t expected, uint32_t value) {
        return __atomic_compare_exchange_n(place, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    }
    static inline void ompy_full_fence(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
    static inline void ompy_fetch_to_write(const void *place) {
    #if defined(__x86_64__)
        /* the compiler's own prefetch is one for reading unless it is told that the processor has this instruction */
        __asm__ volatile("prefetchw %0" : : "m"(*(const char *) place));
    #else
        __builtin_prefetch(place, 1);
    #endif
    }
    """
    uint64_t acquire "ompy_acquire"(const uint64_t *place) noexcept nogil
    void release "ompy_release"(uint64_t *place, uint64_t value) noexcept nogil
    uint32_t acquire32 "ompy_acquire32"(const uint32_t *place) noexcept nogil
    void release32 "ompy_release32"(uint32_t *place, uint32_t value) noexcept nogil
    void add32 "ompy_add32"(uint32_t *place, int change) noexcept nogil
    # Whether the word was as expected, and so is `value` from then on.
    bint exchange_if32 "ompy_exchange_if32"(uint32_t *place, uint32_t expected, uint32_t value) noexcept nogil
    # Have the cache line brought to this core, and taken from the others, while something else goes on: a store to it does
    # not wait then.  Of use for a line that another core has read and does not look at now.
    void fetch_to_write "ompy_fetch_to_write"(const void *place) noexcept nogil
    # Everything stored before it is in the caches before anything after it is loaded or stored.
    void full_fence "ompy_full_fence"() noexcept nogil
