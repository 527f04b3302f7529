// SPDX-License-Identifier: GPL-2.0
/* tt0 and tt1, network devices whose packets and whose time belong to a coordinator.
 *
 * They carry whole IP packets. On two pipes (boot word ttnet=READ,WRITE,DEVICES) they exchange the
 * messages of endpoints/CONTRACT.md with `carries = "ip"` (endpoints/contract/guests.md); tt1 is a
 * proxy's server side, bit 7 of `ecn` (endpoints/contract/middleboxes.md). RUN has arrivals and the
 * end of the run, RAN answers with departures and the next wake. The whole kernel stands still
 * while it waits for RUN. At FINISH it sends SIGINT to the first process, and goes on to its end.
 *
 * In /sys/module/ttnet/parameters, writing 1 to `begin` makes this time zero, and 2 the time of the
 * first packet of TCP or UDP; packets of before are dropped. It reads 1 from then on. `done` is the
 * state for RAN: 0 not done, 1 done, 2 done when there was a TCP connection and none is there any
 * more, or when a packet of another protocol has come.
 */
#include <linux/if_arp.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/moduleparam.h>
#include <linux/netdevice.h>
#include <linux/sched/signal.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/time-internal.h>
#include <linux/unaligned.h>
#include <net/inet_ecn.h>
#include <net/tcp.h>
#include <os.h>

#define RUN 3
#define RAN 4
#define FINISH 5
#define DATAGRAM 11 /* time: u64, ecn: u8, length: u16 */
#define HEADER (5 + 13) /* of a message; next_wake: u64, done: u8, count: u32 */
#define HEADROOM 64
#define SERVER_SIDE 0x80 /* of ecn */

extern u64 time_travel_now(void), time_travel_next(void);

static int from = -1, to = -1, count = 1;
static struct net_device *devices[2];
static bool begun, begins_with_packet;
static u64 zero, until = U64_MAX; /* packets that leave before the first RUN are in the first RAN */
static s64 listeners; /* TCP sockets at time zero */
static bool was_open, came_otherwise; /* TCP connections, packets of another protocol */
static int done;
module_param(done, int, 0644);

static struct time_travel_event horizon, arrival;
static struct sk_buff_head coming;

/* Departures, as a message has them: more than one piece of memory may hold. */
struct chunk {
	struct list_head list;
	size_t used;
	u8 bytes[];
};
#define CHUNK (1 << 13) /* larger pieces of memory may not be available at once */
struct departures {
	struct list_head chunks;
	size_t bytes;
	u32 count;
};
/* A timer may be due at the very end of a run, which is the beginning of the next. */
static struct departures in_run = { LIST_HEAD_INIT(in_run.chunks) };
static struct departures at_end = { LIST_HEAD_INIT(at_end.chunks) };

/* The coordinator is gone, or breaks the contract: there is nobody to report it to. */
static void give_up(const char *why, int number)
{
	os_warn("ttnet: %s (%d)\n", why, number);
	os_kill_process(os_getpid(), 0);
	for (;;)
		;
}

static void read_all(void *bytes, size_t count)
{
	while (count) {
		int got = os_read_file(from, bytes, count);

		if (got == -EINTR)
			continue;
		if (got <= 0)
			give_up("the coordinator is gone", got);
		bytes += got;
		count -= got;
	}
}

static void write_all(const void *bytes, size_t count)
{
	while (count) {
		int put = os_write_file(to, bytes, count);

		if (put == -EINTR)
			continue;
		if (put <= 0)
			give_up("the coordinator is gone", put);
		bytes += put;
		count -= put;
	}
}

static u64 *time_of(struct sk_buff *packet)
{
	return (u64 *)packet->cb;
}

static u8 protocol_of(const struct sk_buff *packet)
{
	return packet->protocol == htons(ETH_P_IPV6) ? ipv6_hdr(packet)->nexthdr : ip_hdr(packet)->protocol;
}

static void expect_next(void)
{
	struct sk_buff *next = skb_peek(&coming);
	u64 now = time_travel_now();

	if (next)
		time_travel_add_event_rel(&arrival, max(*time_of(next), now) - now);
}

static void arrive(struct time_travel_event *event)
{
	struct sk_buff *packet;

	while ((packet = skb_peek(&coming)) && *time_of(packet) <= time_travel_now()) {
		__skb_unlink(packet, &coming);
		memset(packet->cb, 0, sizeof(packet->cb));
		packet->dev->stats.rx_packets++;
		packet->dev->stats.rx_bytes += packet->len;
		came_otherwise |= protocol_of(packet) != IPPROTO_TCP;
		if (netif_rx(packet) == NET_RX_DROP)
			give_up("a packet was dropped before the network layer", skb_queue_len(&coming));
	}
	expect_next();
}

static bool is_done(void)
{
	bool open = percpu_counter_sum(&tcp_sockets_allocated) > listeners;

	was_open |= open;
	if (done != 2)
		return done;
	return !open && (was_open || came_otherwise);
}

static void say_ran(void)
{
	u8 head[HEADER];
	struct chunk *chunk, *next;
	u64 wake = time_travel_now() - zero;
	bool idle = is_idle_task(current) && !need_resched() && !local_softirq_pending();

	if (at_end.count) /* its first packet may have left before the processor was asked for the time */
		wake = get_unaligned_le64(list_first_entry(&at_end.chunks, struct chunk, list)->bytes);
	else if (idle)
		wake = time_travel_next() == S64_MAX ? U64_MAX : time_travel_next() - zero;
	put_unaligned_le32(HEADER - 5 + in_run.bytes, head);
	head[4] = RAN;
	put_unaligned_le64(wake, head + 5);
	head[13] = is_done();
	put_unaligned_le32(in_run.count, head + 14);
	write_all(head, HEADER);
	list_for_each_entry_safe(chunk, next, &in_run.chunks, list) {
		write_all(chunk->bytes, chunk->used);
		list_del(&chunk->list);
		kfree(chunk);
	}
	in_run.bytes = at_end.bytes;
	in_run.count = at_end.count;
	list_splice_init(&at_end.chunks, &in_run.chunks);
	at_end.bytes = 0;
	at_end.count = 0;
}

static void hear_arrival(void)
{
	u8 header[DATAGRAM];
	struct sk_buff *packet;
	u16 length;

	read_all(header, DATAGRAM);
	length = get_unaligned_le16(header + 9);
	packet = alloc_skb(length + 2 * HEADROOM, GFP_ATOMIC);
	if (!packet)
		give_up("out of memory", length);
	skb_reserve(packet, HEADROOM);
	read_all(skb_put(packet, length), length);
	packet->dev = devices[count > 1 && header[8] & SERVER_SIDE];
	packet->protocol = htons(length && packet->data[0] >> 4 == 6 ? ETH_P_IPV6 : ETH_P_IP);
	skb_reset_mac_header(packet);
	skb_reset_network_header(packet);
	*time_of(packet) = get_unaligned_le64(header) + zero;
	__skb_queue_tail(&coming, packet);
}

static void hear_run(void)
{
	u8 head[12];
	u64 now = time_travel_now();
	u32 left;

	read_all(head, 12);
	until = get_unaligned_le64(head) + zero;
	for (left = get_unaligned_le32(head + 8); left; left--)
		hear_arrival();
	time_travel_del_event(&arrival);
	expect_next();
	time_travel_add_event_rel(&horizon, max(until, now) - now);
}

static void exchange(struct time_travel_event *event)
{
	u8 head[5];

	say_ran();
	read_all(head, 5);
	if (head[4] == RUN)
		return hear_run();
	if (head[4] != FINISH)
		give_up("a message of another type", head[4]);
	kill_cad_pid(SIGINT, 1);
}

static void begin(void)
{
	begun = true;
	zero = time_travel_now();
	listeners = percpu_counter_sum(&tcp_sockets_allocated);
	time_travel_add_event_rel(&horizon, 0);
}

static int set_begin(const char *value, const struct kernel_param *parameter)
{
	if (begun)
		return -EBUSY;
	begins_with_packet = *value == '2';
	if (!begins_with_packet)
		begin();
	return 0;
}

static int get_begin(char *value, const struct kernel_param *parameter)
{
	return sprintf(value, "%d", begun);
}

static const struct kernel_param_ops begin_operations = { .set = set_begin, .get = get_begin };
module_param_cb(begin, &begin_operations, NULL, 0600);

static u8 *append_space(struct departures *departures, size_t size)
{
	struct chunk *last = NULL;

	if (!list_empty(&departures->chunks))
		last = list_last_entry(&departures->chunks, struct chunk, list);
	if (!last || sizeof(*last) + last->used + size > CHUNK) {
		last = kmalloc(max_t(size_t, CHUNK, sizeof(*last) + size), GFP_ATOMIC);
		if (!last)
			give_up("out of memory", departures->count);
		last->used = 0;
		list_add_tail(&last->list, &departures->chunks);
	}
	last->used += size;
	departures->bytes += size;
	return last->bytes + last->used - size;
}

static netdev_tx_t transmit(struct sk_buff *packet, struct net_device *own)
{
	struct departures *departures = time_travel_now() < until ? &in_run : &at_end;
	u8 *datagram, *ip;

	if (!begun && begins_with_packet &&
	    (protocol_of(packet) == IPPROTO_TCP || protocol_of(packet) == IPPROTO_UDP))
		begin();
	if (!begun) {
		own->stats.tx_dropped++;
		dev_kfree_skb_any(packet);
		return NETDEV_TX_OK;
	}
	datagram = append_space(departures, DATAGRAM + packet->len);
	ip = datagram + DATAGRAM;
	put_unaligned_le64(time_travel_now() - zero, datagram);
	put_unaligned_le16(packet->len, datagram + 9);
	skb_copy_bits(packet, 0, ip, packet->len);
	datagram[8] = (ip[0] >> 4 == 6 ? ip[1] >> 4 : ip[1]) & INET_ECN_MASK;
	if (own == devices[1])
		datagram[8] |= SERVER_SIDE;
	departures->count++;
	own->stats.tx_packets++;
	own->stats.tx_bytes += packet->len;
	dev_consume_skb_any(packet);
	return NETDEV_TX_OK;
}

static const struct net_device_ops operations = {
	.ndo_start_xmit = transmit,
};

static void describe(struct net_device *own)
{
	own->netdev_ops = &operations;
	own->type = ARPHRD_NONE;
	own->flags = IFF_POINTOPOINT | IFF_NOARP;
	own->mtu = 1500;
	own->max_mtu = 65535;
	own->tx_queue_len = 1000;
}

static int __init read_boot_word(char *word)
{
	return sscanf(word, "%d,%d,%d", &from, &to, &count) == 3;
}
__setup("ttnet=", read_boot_word);

static int __init make(void)
{
	int i, error = 0;

	if (from < 0)
		return 0;
	__skb_queue_head_init(&coming);
	time_travel_set_event_fn(&horizon, exchange);
	time_travel_set_event_fn(&arrival, arrive);
	for (i = 0; i < min(count, 2) && !error; i++) {
		devices[i] = alloc_netdev(0, "tt%d", NET_NAME_ENUM, describe);
		error = devices[i] ? register_netdev(devices[i]) : -ENOMEM;
	}
	return error;
}
late_initcall(make);
