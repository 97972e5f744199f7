/* What two programs on bare TCP sockets take: the least that any library over them can.
 *
 *     bare serve ADDRESS ROW ...            prints the port that it listens at
 *     bare call ADDRESS PORT ROW ...        prints a JSON object a row, as rows.py does
 *
 * Rows are latency:BYTES and window:BYTES:DEPTH.  Both sides poll; a window goes out as one run of bytes, and one byte answers it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* As in rows.py: seconds. */
#define SHORTEST_BATCH 200e-6
#define LONGEST_ROW 2.0
#define FEWEST 5
#define MOST 60
#define WARM_UP 10

static char *buffer;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

static void put(int wire, size_t length) {
    for (size_t done = 0; done < length;) {
        ssize_t moved = send(wire, buffer + done, length - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (moved < 0 && errno != EAGAIN && errno != EINTR)
            fail("send");
        done += moved > 0 ? moved : 0;
    }
}

static void take(int wire, size_t length) {
    for (size_t done = 0; done < length;) {
        ssize_t moved = recv(wire, buffer + done, length - done, MSG_DONTWAIT);
        if (moved == 0) {
            fprintf(stderr, "the other side is gone\n");
            exit(1);
        }
        if (moved < 0 && errno != EAGAIN && errno != EINTR)
            fail("recv");
        done += moved > 0 ? moved : 0;
    }
}

/* What goes one way and what comes back. */
struct row {
    size_t there, back;
    double shared;
};

static struct row parsed(const char *text) {
    size_t bytes = 0, depth = 0;
    if (sscanf(text, "window:%zu:%zu", &bytes, &depth) == 2)
        return (struct row){bytes * depth, 1, (double)depth};
    if (sscanf(text, "latency:%zu", &bytes) == 1)
        return (struct row){bytes, bytes, 2};
    fprintf(stderr, "%s: latency:BYTES or window:BYTES:DEPTH expected\n", text);
    exit(2);
}

static double batch(int wire, const struct row *row, uint64_t count) {
    memcpy(buffer, &count, sizeof count);
    put(wire, sizeof count);
    double begin = now();
    for (uint64_t turn = 0; turn < count; turn++) {
        put(wire, row->there);
        take(wire, row->back);
    }
    return (now() - begin) / (double)(count ? count : 1);
}

static void call(int wire, const char *text) {
    struct row row = parsed(text);
    batch(wire, &row, WARM_UP);
    double once = batch(wire, &row, WARM_UP);
    uint64_t count = (uint64_t)(SHORTEST_BATCH / once) + 1;
    int samples = (int)(LONGEST_ROW / (once * count));
    samples = samples < FEWEST ? FEWEST : samples > MOST ? MOST : samples;
    printf("{\"row\": \"%s\", \"samples\": {\"\": [", text);
    for (int sample = 0; sample < samples; sample++)
        printf("%s%.9g", sample ? ", " : "", batch(wire, &row, count) / row.shared);
    printf("]}, \"cpu\": 0.0}\n");
    fflush(stdout);
    batch(wire, &row, 0);
}

static void serve(int wire, const char *text) {
    struct row row = parsed(text);
    for (;;) {
        uint64_t count;
        take(wire, sizeof count);
        memcpy(&count, buffer, sizeof count);
        if (count == 0)
            return;
        for (uint64_t turn = 0; turn < count; turn++) {
            take(wire, row.there);
            put(wire, row.back);
        }
    }
}

int main(int argc, char **argv) {
    int serving = argc > 2 && strcmp(argv[1], "serve") == 0, rows = serving ? 3 : 4, yes = 1;
    if (argc < rows) {
        fprintf(stderr, "bare serve ADDRESS ROW ... or bare call ADDRESS PORT ROW ... expected\n");
        return 2;
    }
    size_t most = sizeof(uint64_t);
    for (int at = rows; at < argc; at++) {
        struct row row = parsed(argv[at]);
        most = row.there > most ? row.there : most;
    }
    if ((buffer = malloc(most)) == NULL)
        fail("malloc");
    memset(buffer, 1, most);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    if (inet_pton(AF_INET, argv[2], &address.sin_addr) != 1)
        fail(argv[2]);
    int wire = socket(AF_INET, SOCK_STREAM, 0);
    if (wire < 0)
        fail("socket");
    /* Between hosts as near as these nothing is slower than what sends by a clock, which is some systems' default. */
    setsockopt(wire, IPPROTO_TCP, TCP_CONGESTION, "reno", strlen("reno"));
    if (serving) {
        if (bind(wire, (struct sockaddr *)&address, length) || listen(wire, 1)
            || getsockname(wire, (struct sockaddr *)&address, &length))
            fail("listen");
        printf("%d\n", ntohs(address.sin_port));
        fflush(stdout);
        if ((wire = accept(wire, NULL, NULL)) < 0)
            fail("accept");
    } else {
        address.sin_port = htons((uint16_t)atoi(argv[3]));
        if (connect(wire, (struct sockaddr *)&address, length))
            fail("connect");
    }
    setsockopt(wire, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    for (int at = rows; at < argc; at++)
        (serving ? serve : call)(wire, argv[at]);
    return 0;
}
