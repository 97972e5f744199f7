# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""CRC-32C, by the processor's own instruction where it has one (x86-64 with SSE 4.2, AArch64 with CRC), else by tables."""
from libc.stdint cimport uint32_t

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    static uint32_t ompy_crc_table[8][256];

    static void ompy_crc_make_table(void) {
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t crc = byte;
            for (int bit = 0; bit < 8; bit++)
                crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
            ompy_crc_table[0][byte] = crc;
        }
        for (int row = 1; row < 8; row++)
            for (int byte = 0; byte < 256; byte++) {
                uint32_t crc = ompy_crc_table[row - 1][byte];
                ompy_crc_table[row][byte] = crc >> 8 ^ ompy_crc_table[0][crc & 0xFF];
            }
    }

    /* "Slicing by 8" (Kounavis, Berry: A Systematic Approach to Building High Performance Software-based CRC Generators). */
    static uint32_t ompy_crc_by_table(uint32_t crc, const unsigned char *data, size_t length) {
        uint64_t word;
        for (; length >= 8; data += 8, length -= 8) {
            memcpy(&word, data, 8);
    #if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
            word = __builtin_bswap64(word);
    #endif
            word ^= crc;
            crc = 0;
            for (int row = 0; row < 8; row++)
                crc ^= ompy_crc_table[7 - row][word >> 8 * row & 0xFF];
        }
        while (length--)
            crc = crc >> 8 ^ ompy_crc_table[0][(crc ^ *data++) & 0xFF];
        return crc;
    }

    #if defined(__x86_64__)
    static int ompy_crc_has_instruction(void) { return __builtin_cpu_supports("sse4.2"); }
    __attribute__((target("sse4.2")))
    static uint32_t ompy_crc_by_instruction(uint32_t crc, const unsigned char *data, size_t length) {
        uint64_t word, wide = crc;
        for (; length >= 8; data += 8, length -= 8) {
            memcpy(&word, data, 8);
            wide = __builtin_ia32_crc32di(wide, word);
        }
        crc = (uint32_t) wide;
        while (length--)
            crc = __builtin_ia32_crc32qi(crc, *data++);
        return crc;
    }
    #elif defined(__aarch64__) && defined(__linux__)
    #include <arm_acle.h>
    #include <asm/hwcap.h>
    #include <sys/auxv.h>
    static int ompy_crc_has_instruction(void) { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
    __attribute__((target("+crc")))
    static uint32_t ompy_crc_by_instruction(uint32_t crc, const unsigned char *data, size_t length) {
        uint64_t word;
        for (; length >= 8; data += 8, length -= 8) {
            memcpy(&word, data, 8);
            crc = __crc32cd(crc, word);
        }
        while (length--)
            crc = __crc32cb(crc, *data++);
        return crc;
    }
    #else
    static int ompy_crc_has_instruction(void) { return 0; }
    #define ompy_crc_by_instruction ompy_crc_by_table
    #endif
    """
    void make_table "ompy_crc_make_table"()
    bint has_instruction "ompy_crc_has_instruction"()
    uint32_t by_table "ompy_crc_by_table"(uint32_t crc, const unsigned char *data, size_t length) nogil
    uint32_t by_instruction "ompy_crc_by_instruction"(uint32_t crc, const unsigned char *data, size_t length) nogil

ctypedef uint32_t (*Method)(uint32_t crc, const unsigned char *data, size_t length) noexcept nogil

make_table()
cdef Method method = <Method> by_instruction if has_instruction() else <Method> by_table


cdef uint32_t crc32c(uint32_t before, const void *data, size_t length) noexcept nogil:
    return ~method(~before, <const unsigned char *> data, length)


def checksum(const unsigned char[::1] data not None, uint32_t before=0, bint portable=False):
    """The CRC-32C of some bytes, continuing from `before`.

    Parameters:
        portable: by tables, whatever the processor can do.
    """
    cdef const unsigned char *first = &data[0] if data.shape[0] else NULL
    if portable:
        return <uint32_t> ~by_table(~before, first, data.shape[0])
    return crc32c(before, first, data.shape[0])
