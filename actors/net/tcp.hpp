// The transport of real clusters: TCP, encrypted unless both ends are on loopback.
#pragma once

#include <memory>

#include "actors/net/transport.hpp"

namespace troupe {

// Each peer has two connections: control messages never wait behind tensors. I/O threads of its
// own: one for all control connections, handshakes and timers, and one per core at most for data.
//
// Before a connection has proved itself it may send 4 KiB, for limits.handshake. At most
// limits.strangers_per_address of one address can wait for that; then the oldest makes room for the
// next, so that a crowd that says nothing keeps out nobody. Afterwards each side sends a heartbeat
// over the control connection every limits.heartbeat, from which both learn how far their clocks
// are apart; any byte counts as life. A peer that closes, resets or dies is down at once, a silent
// one after limits.silence, to which time in which this process itself stood still adds next to
// nothing.
//
// invalid_argument: a secret of the wrong length, certificates that cannot be used.
// REQUIRES: the handler lives until shutdown() has returned.
Expected<std::unique_ptr<Transport>> make_tcp_transport(const Security& security,
                                                        const TransportLimits& limits,
                                                        TransportHandler& handler);

// True for 127.0.0.0/8 and ::1. Names are resolved; one that has other addresses too is not.
Expected<bool> is_loopback(const Endpoint& endpoint);

}  // namespace troupe
