// How often the ends of a connection to the tracker ping each other, and what
// the tracker allows: numbers for gRPC, in milliseconds. Heartbeats are the
// first line; pings only notice a peer that cannot answer.
#ifndef REGATTA_PROTO_KEEPALIVE_H_
#define REGATTA_PROTO_KEEPALIVE_H_

namespace regatta {

// Of agents and servers; without an answer for so long the tracker is gone.
inline constexpr int kPeerPingMs = 30'000;
inline constexpr int kPeerPingLimitMs = 10'000;
// Of the tracker.
inline constexpr int kTrackerPingMs = 60'000;
inline constexpr int kTrackerPingLimitMs = 20'000;
// Who pings the tracker more often than this is closed, as "too_many_pings",
// after so many strikes.
inline constexpr int kLeastPingIntervalMs = 10'000;
inline constexpr int kPingStrikes = 2;

// A peer whose timer is early must not be taken for one that floods.
static_assert(kPeerPingMs >= 2 * kLeastPingIntervalMs);

}  // namespace regatta

#endif  // REGATTA_PROTO_KEEPALIVE_H_
