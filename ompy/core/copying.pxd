# Copies whose length or place says which instructions are quickest.  To memory that another core had last and reads next, what
# costs is the way of each line from core to core, twice: the writer has to own it, then the reader fetches it.  What is as
# long as the caches is quicker where whole lines are written that nobody fetched, and where it begins with what is cached.
#
# And there is one case in which memcpy is slow.  From some 2 KiB on it uses the processor's string move, as the kernel does.
# AMD's take up to 25 times as long for that (Zen 3: 64 KiB 21 to 28 us, not 1.3) where the target lies up to 31 bytes past
# the source but for whole pages:
#
#     source   | page      ################ | page           a load looks as if it wanted what was stored just before
#     target   | page        ############## | page
#
# Two arrays that were made one after the other, each of a round number of bytes, often lie so: malloc puts 16 bytes between.
cdef extern from *:
    """
    #include <stddef.h>
    #include <string.h>

    /* Every second time. */
    static inline int ompy_turn_around(void) {
        static int from_the_end = 0;
        int backwards = __atomic_load_n(&from_the_end, __ATOMIC_RELAXED);
        __atomic_store_n(&from_the_end, !backwards, __ATOMIC_RELAXED);
        return backwards;
    }

    #if defined(__x86_64__) && defined(__GNUC__)
    #include <cpuid.h>
    #include <immintrin.h>

    #define OMPY_STRING_SMALLEST 2048
    static inline int ompy_string_is_slow(size_t to, size_t from, size_t size) {
        return size >= OMPY_STRING_SMALLEST && (to - from - 1) % 4096 < 31 && __builtin_cpu_is("amd");
    }

    /* By loads and stores of whole registers; backwards every second time, see below.  Zen 3 fetches ahead by itself only up
       to the end of a page; Zen 4, which has AVX-512, is quicker without help, and by registers of 32 bytes as by those of
       64. */
    #define OMPY_STEP ((size_t) 128)
    #define OMPY_AHEAD 1024

    __attribute__((target("avx2"), always_inline)) static inline void ompy_copy_step(char *to, const char *from,
                                                                                           ptrdiff_t ahead) {
        const __m256i *origin = (const __m256i *) from;
        __m256i a = _mm256_loadu_si256(origin), b = _mm256_loadu_si256(origin + 1);
        __m256i c = _mm256_loadu_si256(origin + 2), d = _mm256_loadu_si256(origin + 3);
        if (ahead) {
            _mm_prefetch(from + ahead, _MM_HINT_T0);
            _mm_prefetch(from + ahead + 64, _MM_HINT_T0);
            _mm_prefetch(to + ahead, _MM_HINT_T0);
            _mm_prefetch(to + ahead + 64, _MM_HINT_T0);
        }
        _mm256_storeu_si256((__m256i *) to, a);
        _mm256_storeu_si256((__m256i *) to + 1, b);
        _mm256_storeu_si256((__m256i *) to + 2, c);
        _mm256_storeu_si256((__m256i *) to + 3, d);
    }

    __attribute__((target("avx2"), always_inline)) static inline void ompy_copy_steps(char *to, const char *from, size_t size,
                                                                                      ptrdiff_t ahead) {
        size_t at, end, first = -(size_t) to & 63;
        memcpy(to, from, first);
        to += first;
        from += first;
        size -= first;
        end = size - size % OMPY_STEP;
        memcpy(to + end, from + end, size - end);
        if (ompy_turn_around())
            for (at = end; at > 0; at -= OMPY_STEP)
                ompy_copy_step(to + at - OMPY_STEP, from + at - OMPY_STEP, -ahead);
        else
            for (at = 0; at < end; at += OMPY_STEP)
                ompy_copy_step(to + at, from + at, ahead);
    }

    __attribute__((target("avx2"), noinline)) static void ompy_copy_registers(char *to, const char *from, size_t size) {
        if (__builtin_cpu_supports("avx512f"))
            ompy_copy_steps(to, from, size, 0);
        else
            ompy_copy_steps(to, from, size, OMPY_AHEAD);
    }

    static inline void ompy_copy(void *to, const void *from, size_t size) {
        if (ompy_string_is_slow((size_t) to, (size_t) from, size) && __builtin_cpu_supports("avx2"))
            ompy_copy_registers(to, from, size);
        else
            memcpy(to, from, size);
    }

    /* Whole lines between two ragged ends, the last one first, by the fewest stores: so many of them wait for their lines
       at once.  In that range memcpy takes up to 1.4 times as long; beyond, the processor's own copy is quicker. */
    #define OMPY_LINES_SMALLEST 768
    #define OMPY_LINES_LARGEST 1536
    #define OMPY_COPY_LINES(NAME, TARGET, VECTOR, LOAD, STORE)                                                          \
        __attribute__((target(TARGET), noinline)) static void NAME(char *to, const char *from, size_t size) {          \
            size_t first = -(size_t) to & 63, end = first + ((size - first) & ~(size_t) 63), at;                       \
            memcpy(to + end, from + end, size - end);                                                                  \
            for (at = end; at > first; at -= sizeof(VECTOR))                                                           \
                STORE((VECTOR *) (to + at) - 1, LOAD((const VECTOR *) (from + at) - 1));                               \
            memcpy(to, from, first);                                                                                   \
        }
    OMPY_COPY_LINES(ompy_copy_lines_512, "avx512f", __m512i, _mm512_loadu_si512, _mm512_store_si512)
    OMPY_COPY_LINES(ompy_copy_lines_256, "avx2", __m256i, _mm256_loadu_si256, _mm256_store_si256)

    static inline void ompy_copy_out(char *to, const char *from, size_t size) {
        if (size <= OMPY_LINES_SMALLEST || size > OMPY_LINES_LARGEST)
            ompy_copy(to, from, size);
        else if (__builtin_cpu_supports("avx512f"))
            ompy_copy_lines_512(to, from, size);
        else if (__builtin_cpu_supports("avx2"))
            ompy_copy_lines_256(to, from, size);
        else
            ompy_copy(to, from, size);
    }

    /* Non-temporal stores: a line goes to memory whole, so nobody has to own it first, and the caches keep what they have.
       They are ordered by the fence only. */
    static inline void ompy_stream_out(char *to, const char *from, size_t size) {
        size_t at = -(size_t) to & 63;
        if (at > size)
            at = size;
        memcpy(to, from, at);
        for (; at + 64 <= size; at += 64) {
            const __m128i *origin = (const __m128i *) (from + at);
            __m128i a = _mm_loadu_si128(origin), b = _mm_loadu_si128(origin + 1);
            __m128i c = _mm_loadu_si128(origin + 2), d = _mm_loadu_si128(origin + 3);
            _mm_stream_si128((__m128i *) (to + at), a);
            _mm_stream_si128((__m128i *) (to + at) + 1, b);
            _mm_stream_si128((__m128i *) (to + at) + 2, c);
            _mm_stream_si128((__m128i *) (to + at) + 3, d);
        }
        memcpy(to + at, from + at, size - at);
        _mm_sfence();
    }

    /* The next long copy begins at the end where the last one stopped, whose lines are still in the second-level cache if it
       was of the same memory:

           one:  0 1 2 ... 14 15      the next:  15 14 ... 2 1 0

       AMD's processors, and those without AVX-512, by registers, which pays from where the first-level cache no longer holds
       both; on a Zen 4 64 KiB take 1.0 us so, not 1.24.  From Zen 5 on the string move is as quick while the second-level cache
       holds both, wherever they lie: 0.5 us, and by registers 0.5 to 0.7.  The others by blocks of the string move, which
       fetches no line that it overwrites.  Longer than OMPY_LONG_LARGEST, memcpy writes past the caches. */
    #define OMPY_LONG_SMALLEST (512 << 10)
    #define OMPY_REGISTERS_SMALLEST (32 << 10)
    #define OMPY_LONG_LARGEST (8 << 20)
    #define OMPY_LONG_BLOCK ((size_t) 64 << 10)

    static inline void ompy_move_string(char *to, const char *from, size_t size) {
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
    }

    static int ompy_moves_strings(void) {
        static int known = -1;
        int moves = __atomic_load_n(&known, __ATOMIC_RELAXED);
        if (moves < 0) {
            unsigned a, b = 0, c, d;
            moves = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 9 & 1);
            __atomic_store_n(&known, moves, __ATOMIC_RELAXED);
        }
        return moves;
    }

    __attribute__((noinline)) static void ompy_copy_blocks(char *to, const char *from, size_t size) {
        size_t at, rest = size % OMPY_LONG_BLOCK;
        if (ompy_turn_around()) {
            ompy_move_string(to + size - rest, from + size - rest, rest);
            for (at = size - rest; at > 0; at -= OMPY_LONG_BLOCK)
                ompy_move_string(to + at - OMPY_LONG_BLOCK, from + at - OMPY_LONG_BLOCK, OMPY_LONG_BLOCK);
        } else {
            for (at = 0; at < size - rest; at += OMPY_LONG_BLOCK)
                ompy_move_string(to + at, from + at, OMPY_LONG_BLOCK);
            ompy_move_string(to + at, from + at, rest);
        }
    }

    static inline int ompy_is_zen_4(void) { return __builtin_cpu_is("amdfam19h") && __builtin_cpu_supports("avx512f"); }

    static inline int ompy_likes_registers(size_t size) {
        return __builtin_cpu_supports("avx2") && (!__builtin_cpu_supports("avx512f") || ompy_is_zen_4() ||
                                                  (size >= OMPY_LONG_SMALLEST && __builtin_cpu_is("amd")));
    }

    static inline void ompy_copy_long(char *to, const char *from, size_t size) {
        if (size < OMPY_REGISTERS_SMALLEST || size > OMPY_LONG_LARGEST)
            ompy_copy(to, from, size);
        else if (ompy_likes_registers(size))
            ompy_copy_registers(to, from, size);
        else if (size >= OMPY_LONG_SMALLEST && ompy_moves_strings())
            ompy_copy_blocks(to, from, size);
        else
            ompy_copy(to, from, size);
    }
    #else
    static inline int ompy_is_zen_4(void) { return 0; }
    static inline int ompy_string_is_slow(size_t to, size_t from, size_t size) { return 0; }
    static inline void ompy_copy(void *to, const void *from, size_t size) { memcpy(to, from, size); }
    static inline void ompy_copy_out(char *to, const char *from, size_t size) { memcpy(to, from, size); }
    static inline void ompy_stream_out(char *to, const char *from, size_t size) { memcpy(to, from, size); }
    static inline void ompy_copy_long(char *to, const char *from, size_t size) { memcpy(to, from, size); }
    #endif
    """
    # A processor with figures of its own.
    bint is_zen_4 "ompy_is_zen_4"() noexcept nogil
    # Whether the processor's string move is slow from one address to the other; the kernel copies by it.
    bint string_is_slow "ompy_string_is_slow"(size_t to, size_t origin, size_t size) noexcept nogil
    # Every second time: from the end, whose lines are still in a cache if the last copy was of the same memory.
    bint turn_around "ompy_turn_around"() noexcept nogil
    # memcpy, but where that is slow.
    void copy_bytes "ompy_copy"(void *to, const void *origin, size_t size) noexcept nogil
    # Out to another core, which reads it next.
    void copy_out "ompy_copy_out"(char *to, const char *origin, size_t size) noexcept nogil
    # Past the caches, where the processor can (x86-64); elsewhere an ordinary copy.
    void stream_out "ompy_stream_out"(char *to, const char *origin, size_t size) noexcept nogil
    # Of any length; quicker than memcpy where it is as long as a cache (x86-64).
    void copy_long "ompy_copy_long"(char *to, const char *origin, size_t size) noexcept nogil
