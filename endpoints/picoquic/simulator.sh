#!/bin/sh
# Builds picoquic's simulator with picoquic's queue disciplines into a folder: sh simulator.sh TARGET WORK
# library.sh has built what it stands on. pico_sim_disciplines has them as they are; pico_sim_changed has one thing changed
# in each, for which a comparison suspects them:
#
# - The queue of L4S marks by how long the packet has waited that leaves, and not the one behind it.
# - Other packets are marked or dropped with the square of the base probability (RFC 9332, appendix A), and not with its
#   product with that of L4S, which is 0 where nothing of L4S waits.
# - RED draws by chance, and does not count.
set -eu
target=$1 work=$2
sources=$work/sources/picoquic changed=$work/changed
mkdir -p "$changed"
folders="-I$sources/picohttp -I$sources/loglib -I$sources/picoquic -I$sources/picoquictest -I$work/sources/picotls/include"
compile() { "${CC:-cc}" -std=gnu11 -O2 -w $folders "$@"; }

sed -e '/^double dualq_laqm/,/^}/s/dualq_state_t\* dualq, /&picoquictest_sim_packet_t* packet, /' \
    -e '/^double dualq_laqm/,/^}/s/lq.count > 1/lq.count > 0/' \
    -e '/^double dualq_laqm/,/^}/s/dualq->lq.queue_first->arrival_time/packet->arrival_time/g' \
    -e 's/dualq->p_C = dualq->pprime \* dualq->pprime_L;/dualq->p_C = dualq->pprime * dualq->pprime;/' \
    -e 's/dualq_laqm(dualq, current_time)/dualq_laqm(dualq, packet, current_time)/' \
    "$sources/picoquic/dualq_aqm.c" >"$changed/dualq_aqm.c"
sed -e 's/^int red_aqm_recur(/int draw_drop(const void *queue, double probability);\n&/' \
    -e 's/red_aqm_recur(red_state, red_aqm_drop_rate/draw_drop(red_state, red_aqm_drop_rate/' \
    "$sources/picoquictest/red_aqm.c" >"$changed/red_aqm.c"
grep -q 'packet->arrival_time < current_time' "$changed/dualq_aqm.c"
grep -q 'p_C = dualq->pprime \* dualq->pprime;' "$changed/dualq_aqm.c"
grep -q 'draw_drop(red_state' "$changed/red_aqm.c"

compile -Dpicoquic_create=create_with_mark -Ddualq_configure=configure_queue -c -o "$changed/ns.o" \
    "$sources/picohttp/picoquic_ns.c"
compile -c -o "$changed/disciplines.o" simulator/disciplines.c
libraries="$work/build/picoquic/libpicohttp-core.a"
for kind in disciplines changed; do
    [ $kind = changed ] && dualq=$changed/dualq_aqm.c red=$changed/red_aqm.c
    compile -o "$target/pico_sim_$kind" "$sources/p_sim/pico_sim.c" "$changed/ns.o" "$changed/disciplines.o" \
        ${dualq:-} "${red:-$sources/picoquictest/red_aqm.c}" $libraries @"$work/libs" -lm -lpthread
done
