// Connects processes: authenticated peers that exchange control messages and tensors. Two
// implementations: TCP with TLS (tcp.hpp), and for tests a deterministic one in memory
// (tests/net/memory_transport.hpp).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "actors/net/tensor_header.hpp"
#include "core/buffer.hpp"
#include "core/clock_offset.hpp"
#include "core/status.hpp"

namespace troupe {

// Identifies one peer process within one Transport, from connect() or admit() to peer_down(). Never
// 0, never reused: a process that comes back gets a new number.
using PeerId = std::uint64_t;

// "127.0.0.1" and 7077. Names are resolved by the call that takes them, which may block for that;
// numeric addresses never do. Port 0 asks listen() for a free one.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
  // As parse_endpoint() reads it.
  std::string text() const {
    const bool six = host.find(':') != std::string::npos;
    return (six ? "[" + host + "]" : host) + ":" + std::to_string(port);
  }
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};
// "host:port" or "[::1]:port"; invalid_argument for anything else.
Expected<Endpoint> parse_endpoint(std::string_view text);

// Bytes that each side sends about itself before anything else: its identity, job and versions.
// Opaque to the transport.
using Hello = std::string;
inline constexpr std::size_t kMaxHello = 3072;

// How peers prove who they are. Off loopback everything is TLS 1.3.
//  plaintext     no proof at all; loopback addresses only, anything else is refused.
//  secret        both sides hold the same 16 to 64 bytes (TLS 1.3 external PSK).
//  certificates  mutual: holders of a certificate of the authority are members.
struct Security {
  enum class Mode : std::uint8_t { plaintext, secret, certificates };
  Mode mode = Mode::plaintext;
  std::string secret;
  std::string certificate_file, key_file, authority_file;  // PEM
  // Between two loopback addresses the data connection is plain, and opened with a single-use
  // token that the encrypted control connection handed out. True: encrypted there too.
  bool encrypt_loopback_data = false;

  static Security plaintext() { return {}; }
  static Security shared_secret(std::string bytes) {
    Security s;
    s.mode = Mode::secret;
    s.secret = std::move(bytes);
    return s;
  }
};

using ByteView = std::span<const std::byte>;
inline ByteView as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Events of a transport, for its owner. Callbacks come from I/O threads and must not block: pass
// the event to an actor and return. A callback may call any method of the Transport but shutdown().
//
// For one peer: admit, then peer_up, then any number of control, accept_tensor, tensor and
// drained, then peer_down, which is the last. admit, peer_up, control and peer_down of all peers
// come from one thread, one at a time. accept_tensor and tensor of one peer come one at a time,
// from other threads, so possibly at the same moment as control().
// Refusals (errors returned from admit, accept_tensor) close the peer, which receives the error.
class TransportHandler {
 public:
  virtual ~TransportHandler() = default;

  // The peer is authenticated; may it join? Its hello describes it. A peer that is admitted may
  // still be lost before peer_up; for one that this side connects to, admit is then called again,
  // with the same id.
  virtual Status admit(PeerId peer, const Hello& hello) = 0;
  virtual void peer_up(PeerId peer, const Hello& hello) = 0;
  // Every admitted peer, and every connect() that was ok, ends with exactly one of these. `why` is
  // never ok: unavailable (lost, refused, silent: it says for how long), deadline_exceeded
  // (connect), the Status given to close() here or there, data_loss (checksum), invalid_argument
  // (malformed).
  virtual void peer_down(PeerId peer, Status why) = 0;
  // One message, in the order sent; bulk messages in theirs. The buffer holds exactly its bytes.
  virtual void control(PeerId peer, Buffer message) = 0;
  // Returns memory of at least header.bytes for a tensor, before any of its bytes are read; an
  // empty Buffer will do for 0 bytes. Check the size here: this is the only place where a peer's
  // claim turns into memory. An empty Buffer for a tensor with bytes rejects it: they are read and
  // dropped, and tensor() is not called.
  virtual Expected<Buffer> accept_tensor(PeerId peer, const TensorHeader& header) = 0;
  // All bytes have arrived, and checksums match. Tensors may overtake each other.
  virtual void tensor(PeerId peer, const TensorHeader& header, Buffer bytes) = 0;
  // queued_bytes() of the peer fell to half of TransportLimits::queue_mark after it had been more
  // than the mark. A sender that stops above the mark and resumes here never stops for good.
  virtual void drained(PeerId) {}
  // The offset of the peer's steady clock from ours, from its heartbeats. Called as control() is.
  virtual void clock(PeerId, const ClockOffset&) {}
};

struct TransportLimits {
  std::uint32_t control_bytes = 16u << 20;    // largest control message accepted
  std::uint32_t chunk_bytes = 16u << 20;      // largest data chunk accepted
  std::uint32_t send_chunk_bytes = 1u << 20;  // data is cut into pieces of this size
  std::uint64_t queue_mark = 64u << 20;       // see drained()
  std::chrono::milliseconds heartbeat{50};
  // A peer that is silent for longer is down, and so is one that for so long reads nothing of what
  // was sent to its data connection, unless it holds that connection. This and all other times are
  // by a clock that runs only while this process does (core/accumulating_clock.hpp).
  std::chrono::milliseconds silence{2000};
  std::chrono::milliseconds handshake{2000};  // to prove itself, after a connection is accepted
  // What was sent before close(), and why it was called, are given up when the peer takes nothing
  // of it for so long, or not all within `silence` or 5 s.
  std::chrono::milliseconds linger{200};
  // A peer whose data connection has ended is down when its control connection says nothing for so
  // long: why it was closed comes there.
  std::chrono::milliseconds last_words{40};
  // Limits on connections that are not authenticated yet; the second one holds, separately, also
  // for authenticated ones that have not joined yet. Beyond a limit, the oldest is closed.
  std::uint32_t strangers_per_address = 128;
  std::uint32_t strangers = 512;
};

// Sends to peers. All methods may be called from any thread (in memory: from its one thread), and
// none waits for the network except to resolve names. Nothing is dropped silently: what was
// accepted for a peer is delivered, in order, or the peer goes down. The transport owns its
// threads; it is destroyed after shutdown(), before its handler.
class Transport {
 public:
  virtual ~Transport() = default;

  // Accepts peers, and sends them `hello`; returns the bound port. May be called for several
  // addresses. failed_precondition: plaintext off loopback; unavailable: the address is taken.
  virtual Expected<std::uint16_t> listen(const Endpoint& at, Hello hello) = 0;
  // Returns the id for a peer to connect to, so that the caller knows it before the first callback
  // does.
  virtual PeerId name_peer() = 0;
  // Starts to connect. A connection that is refused, or breaks before the peer is up, is tried
  // again until `within` is over; a peer that is not admitted is not. The outcome is peer_up or
  // peer_down with this id, possibly before connect() returns; after an error neither comes.
  // REQUIRES: `peer` is from name_peer(), and used once.
  virtual Status connect(PeerId peer, const Endpoint& to, Hello hello,
                         std::chrono::milliseconds within) = 0;
  Expected<PeerId> connect(const Endpoint& to, Hello hello, std::chrono::milliseconds within) {
    PeerId peer = name_peer();
    TROUPE_TRY(connect(peer, to, std::move(hello), within));
    return peer;
  }
  // For a peer that its user may stop for as long as they like, such as a process of this machine:
  // it may be silent as long as `stopped` returns true. That is called on an I/O thread while the
  // peer is silent, once in each heartbeat. No effect for an unknown peer.
  virtual void allow_silence(PeerId peer, std::function<bool()> stopped) = 0;

  // Queues one message made of the pieces, which are copied. unavailable: the peer is not up;
  // resource_exhausted: longer than the peer accepts.
  virtual Status send_control(PeerId peer, std::span<const ByteView> pieces) = 0;
  // As send_control, for a message that may take long to arrive and that nobody waits for
  // meanwhile: control messages sent later overtake it. It overtakes none, and bulk messages keep
  // their order.
  virtual Status send_bulk(PeerId peer, std::span<const ByteView> pieces) = 0;
  // Queues header.bytes bytes of `bytes` from `offset`; the buffer is held, not copied, until they
  // are sent. It never refuses for lack of room: the caller bounds what is queued, see
  // queued_bytes().
  virtual Status send_tensor(PeerId peer, const TensorHeader& header, Buffer bytes,
                             std::size_t offset) = 0;
  // Tensor bytes accepted by send_tensor and not yet taken by the operating system; control
  // messages are few and not counted. 0 for an unknown peer.
  virtual std::uint64_t queued_bytes(PeerId peer) const = 0;

  // True: no more of the peer's tensors are read until it is called with false, so that the peer
  // has to wait; what was read already, up to 128 KiB, is still delivered. Control messages arrive
  // as before. Never waits for a callback, so the caller may hold a lock that callbacks take. No
  // effect for a peer that is not up.
  virtual void hold_tensors(PeerId peer, bool hold) = 0;

  // Ends the peer; both sides see `why` in peer_down. What is still queued is lost.
  // REQUIRES: !why.ok().
  virtual void close(PeerId peer, Status why) = 0;
  // Ends all peers (cancelled), calls the last peer_down, joins the threads. Idempotent. Not from
  // a callback.
  virtual void shutdown() = 0;

  Status send_control(PeerId peer, ByteView message) {
    return send_control(peer, std::span<const ByteView>(&message, 1));
  }
  Status send_bulk(PeerId peer, ByteView message) {
    return send_bulk(peer, std::span<const ByteView>(&message, 1));
  }
};

}  // namespace troupe
