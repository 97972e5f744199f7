# Words that processes share, read and written whole and in order.
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

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
    /* On a word of 4 or 8 bytes; the old value, its sign extended. */
    #define OMPY_ATOMIC(NAME, TYPE)                                                                               \\
    static inline int64_t NAME(TYPE *place, int operation, int64_t operand, int64_t compare) {                    \\
        TYPE old, value = (TYPE) operand, expected = (TYPE) compare;                                               \\
        switch (operation) {                                                                                      \\
        case 0: return __atomic_fetch_add(place, value, __ATOMIC_SEQ_CST);                                        \\
        case 1: return __atomic_fetch_and(place, value, __ATOMIC_SEQ_CST);                                        \\
        case 2: return __atomic_fetch_or(place, value, __ATOMIC_SEQ_CST);                                         \\
        case 3: return __atomic_fetch_xor(place, value, __ATOMIC_SEQ_CST);                                        \\
        case 4: return __atomic_exchange_n(place, value, __ATOMIC_SEQ_CST);                                       \\
        case 7:                                                                                                   \\
            __atomic_compare_exchange_n(place, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);          \\
            return expected;                                                                                      \\
        }                                                                                                         \\
        old = __atomic_load_n(place, __ATOMIC_SEQ_CST);                                                           \\
        while ((operation == 5 ? value < old : value > old)                                                       \\
               && !__atomic_compare_exchange_n(place, &old, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))        \\
            ;                                                                                                     \\
        return old;                                                                                               \\
    }
    OMPY_ATOMIC(ompy_atomic32, int32_t)
    OMPY_ATOMIC(ompy_atomic64, int64_t)
    static inline void ompy_full_fence(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
    static inline void ompy_relax(void) {
    #if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
    #elif defined(__aarch64__)
        __asm__ volatile("yield");
    #endif
    }
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
    # 0 add, 1 and, 2 or, 3 xor, 4 swap, 5 min, 6 max, 7 swap where the word is `compare`: on a signed word; the old value.
    int64_t atomic32 "ompy_atomic32"(int32_t *place, int operation, int64_t operand, int64_t compare) noexcept nogil
    int64_t atomic64 "ompy_atomic64"(int64_t *place, int operation, int64_t operand, int64_t compare) noexcept nogil
    # Have the cache line brought to this core, and taken from the others, while something else goes on: a store to it does
    # not wait then.  Of use for a line that another core has read and does not look at now.
    void fetch_to_write "ompy_fetch_to_write"(const void *place) noexcept nogil
    # Between two looks at a word that another core is about to write.
    void relax "ompy_relax"() noexcept nogil
    # Everything stored before it is in the caches before anything after it is loaded or stored.
    void full_fence "ompy_full_fence"() noexcept nogil
