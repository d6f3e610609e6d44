// The transport of real clusters: TCP, encrypted unless both ends are on loopback.
#pragma once

#include <memory>

#include "actors/net/transport.hpp"

namespace troupe {

// Each peer has two connections, so that control messages never wait behind tensors. The transport
// has I/O threads of its own: one for all control connections, handshakes and timers, and at most
// one per core for data.
//
// Before a connection has proved itself it may send 4 KiB, for limits.handshake. At most
// limits.strangers_per_address of one address can wait for that; then the oldest makes room for the
// next, so that idle connections keep nobody out. Afterwards each side sends a heartbeat over the
// control connection every limits.heartbeat, from which both learn the offset of their clocks; any
// byte counts as a sign of life. A peer that closes, resets or dies is down at once, a silent one
// after limits.silence, to which time in which this process itself stood still adds next to
// nothing.
//
// invalid_argument: a secret of the wrong length, certificates that cannot be used.
// REQUIRES: the handler lives until shutdown() has returned.
Expected<std::unique_ptr<Transport>> make_tcp_transport(const Security& security,
                                                        const TransportLimits& limits,
                                                        TransportHandler& handler);

// True for 127.0.0.0/8 and ::1. Names are resolved; false for one that has other addresses, too.
Expected<bool> is_loopback(const Endpoint& endpoint);

}  // namespace troupe
