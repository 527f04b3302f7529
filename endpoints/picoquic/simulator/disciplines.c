// Features of picoquic's queue disciplines that pico_sim does not offer. picoquic_ns.c is compiled with two of its calls
// replaced by those here (simulator.sh):
//
// - pico_sim gives every packet the ECN codepoint of its context's default congestion control, NewReno's ECT(0), whatever
//   sends it, so its queue of L4S stays empty. With PICO_SIM_MARK_AS that control is the default.
// - picoquic has RED in its tests only. With PICO_SIM_RED=THRESHOLD,MAX, both in microseconds, a link has it in place of
//   the two queues of L4S, which `l4s_max` asks for.

#include <stdio.h>
#include <stdlib.h>

#include <picoquic.h>
#include <picoquic_utils.h>

#include <picoquictest_dualq.h>
#include <picoquictest_red.h>

picoquic_quic_t *create_with_mark(uint32_t connections, char const *cert, char const *key, char const *roots,
                                  char const *alpn, picoquic_stream_data_cb_fn callback, void *callback_context,
                                  picoquic_connection_id_cb_fn cid_callback, void *cid_context, uint8_t *reset_seed,
                                  uint64_t now, uint64_t *simulated_time, char const *tickets,
                                  const uint8_t *ticket_key, size_t ticket_key_length) {
    picoquic_quic_t *made =
        picoquic_create(connections, cert, key, roots, alpn, callback, callback_context, cid_callback, cid_context,
                        reset_seed, now, simulated_time, tickets, ticket_key, ticket_key_length);
    const char *algorithm = getenv("PICO_SIM_MARK_AS");
    if (made != NULL && algorithm != NULL) picoquic_set_default_congestion_algorithm_by_name(made, algorithm);
    return made;
}

int configure_queue(picoquictest_sim_link_t *link, uint64_t l4s_max) {
    const char *red = getenv("PICO_SIM_RED");
    unsigned long long threshold, max;
    if (red == NULL) return dualq_configure(link, l4s_max);
    if (sscanf(red, "%llu,%llu", &threshold, &max) != 2) {
        fprintf(stderr, "PICO_SIM_RED=%s: wanted is THRESHOLD,MAX in microseconds\n", red);
        return -1;
    }
    return red_aqm_configure(link, threshold, max);
}

#define MOST_QUEUES 8

// Whether a queue under RED drops, by the draw of Floyd and Jacobson 1993, section IV: the probability grows with the
// number of packets since the last drop. pico_sim_changed has it in place of picoquic's count. PICO_SIM_SEED is its seed.
int draw_drop(const void *queue, double probability) {
    static uint64_t state;
    static const void *queues[MOST_QUEUES];
    static int since[MOST_QUEUES];
    int number = 0;
    while (number < MOST_QUEUES - 1 && queues[number] != NULL && queues[number] != queue) number++;
    if (queues[number] == NULL) since[number] = -1;
    queues[number] = queue;
    if (probability <= 0) {
        since[number] = -1;
        return 0;
    }
    since[number]++;
    double left = 1 - since[number] * probability;
    double drawn = left <= 0 ? 1 : probability / left;
    if (state == 0) {
        const char *seed = getenv("PICO_SIM_SEED");
        state = (seed == NULL ? 1 : strtoull(seed, NULL, 10)) * 0x9E3779B97F4A7C15u + 1;
    }
    state ^= state << 13; // xorshift64 (Marsaglia 2003)
    state ^= state >> 7;
    state ^= state << 17;
    int drops = (double)(state >> 11) * 0x1p-53 < drawn;
    if (drops) since[number] = 0;
    return drops;
}
