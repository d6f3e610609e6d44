// Measures the TCP transport between two processes, beside raw sockets in the same run.
#pragma once

#include <string>
#include <vector>

#include "core/status.hpp"

namespace troupe {

// One line of a benchmark's answer. The ratio of what was measured in turns with its peer is the
// median of those of the rounds, else value / peer_value; 0 where there is no peer.
struct ChannelRow {
  std::string name;
  double value = 0;
  std::string unit;
  std::string peer;  // what it is compared with
  double peer_value = 0;
  double ratio = 0;
};

struct ChannelBench {
  int rounds = 5;      // medians of so many; ours and the peer take turns
  double scale = 1.0;  // of the bytes sent and the seconds measured
  std::string only;    // rows whose name contains this; empty: all
};

// Rows channel.tcp.SIZE (GB/s, peer: one writev and recv loop per message over a raw socket),
// channel.tls.SIZE (peer: our own plain connection), channel.control_p50_idle (us, peer: a raw
// ping-pong), channel.control_p99_under_load (ms, peer: the limit of 5), channel.64_peers.fairness
// (bytes of the slowest over the fastest, peer: the limit of 0.8), channel.64_peers.throughput
// (GB/s, peer: one connection). Default socket options, checksums on.
// REQUIRES: the process has no other thread: it forks.
Expected<std::vector<ChannelRow>> bench_channel(const ChannelBench& options);

}  // namespace troupe
