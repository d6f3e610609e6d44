// One TCP connection: a socket, TLS if any, and the two halves of the framing.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <variant>
#include <vector>

#include "actors/net/detail/io_shard.hpp"
#include "actors/net/detail/tls.hpp"
#include "actors/net/rx.hpp"
#include "actors/net/socket.hpp"
#include "actors/net/transport.hpp"
#include "actors/net/tx.hpp"

namespace troupe {

// Reads on its shard's thread, as fast as bytes arrive unless it is held. Sends from any thread: a
// small frame on an idle connection is written by the calling thread, everything else by the
// shard's. Encrypted data is written by the shard alone, so that no caller pays for it.
//
// Sending holds no lock across a system call: senders put frames into inbox_, then the thread that
// raises work_ from zero owns tx_ until it has brought work_ back to zero; the others return,
// because the owner looks again.
class Connection : public IoShard::Source,
                   public std::enable_shared_from_this<Connection>,
                   private RxSink {
 public:
  // Called on the shard's thread.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void spoke(Connection& c) = 0;   // accepted as `sniff`: its first bytes are there
    virtual void opened(Connection& c) = 0;  // connected, TLS included: frames may be sent
    virtual Status frame(Connection& c, FrameType type, Buffer payload) = 0;
    virtual Expected<Buffer> grant(Connection& c, const TensorHeader& header) = 0;
    virtual void tensor(Connection& c, const TensorHeader& header, Buffer bytes) = 0;
    virtual void drained(Connection& c) = 0;
    virtual void ended(Connection& c, Status why) = 0;  // once; not after close()
    virtual void left(Connection& c) = 0;               // after linger(): the peer has closed, too
  };
  using Clock = std::chrono::steady_clock;

  enum class Role : std::uint8_t { stranger, control, data };
  // The side of the TLS handshake. `sniff`: an accepted connection whose first byte tells whether
  // it is encrypted.
  enum class Side : std::uint8_t { connecting, accepted, sniff };

  struct Setup {
    std::uint64_t id = 0;
    Side side = Side::accepted;
    const TlsContext* tls = nullptr;  // null: plain
    bool plain_allowed = false;       // for sniff: frames without TLS may come
    RxLimits rx;
    std::uint64_t queue_mark = 0;
  };

  Connection(Descriptor fd, Owner& owner, Setup setup);
  ~Connection() override;

  // Enters the shard's loop and begins: connects, shakes hands, reads. On the shard's thread.
  Status start(IoShard& shard);
  // Moves to another shard. The connection is open, and is not read until read_on(). Call on the
  // old shard's thread.
  Status move_to(IoShard& shard);
  void set_reading(bool on) { reading_ = on; }  // before start()
  void read_on();
  // Any thread: nothing is read until hold(false). REQUIRES: reading.
  void hold(bool on);

  void send(std::vector<std::byte> frame);  // any thread
  void send(BulkFrame frame);               // any thread; not counted by queued_bytes()
  void send(OutgoingTensor tensor);         // any thread
  std::uint64_t queued_bytes() const { return queued_.load(std::memory_order_relaxed); }
  // Bytes of the stream so far, as both sides count them: without the overhead of TLS.
  std::uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }
  std::uint64_t bytes_read() const { return bytes_read_.load(std::memory_order_relaxed); }
  bool held() const { return held_; }
  Clock::time_point last_heard() const { return Clock::time_point(Clock::duration(heard_.load())); }

  // No callbacks come after these. close() is called on the shard's thread; retire(), for a shared
  // shard, waits for the callback that another thread may be in, so callbacks cannot call it.
  // linger(): queued frames are still sent, bulk ones aside, and the socket is drained until the
  // peer closes or close() is called; then lingering() is false.
  void close();
  void retire();
  void linger();
  bool is_open() const { return phase_ == Phase::open; }
  bool lingering() const { return phase_ == Phase::lingering; }
  // Changes whenever the peer's machine has taken something of what was sent.
  std::int64_t delivered() const;

  void set_limits(RxLimits limits) { rx_.set_limits(limits); }
  void set_tx(TxOptions options) { tx_.set_options(options); }  // before anything is sent

  std::uint64_t id() const { return setup_.id; }
  IoShard& shard() { return *shard_; }
  int fd() const { return fd_.get(); }
  bool encrypted() const { return tls_ != nullptr; }

  // The transport's notes, set before other threads see the connection.
  Role role = Role::stranger;
  PeerId peer = 0;

 private:
  enum class Phase : std::uint8_t { connecting, sniffing, handshake, open, lingering, closed };
  using Item = std::variant<std::vector<std::byte>, BulkFrame, OutgoingTensor>;

  void on_ready(std::uint32_t events) override;
  void serve(std::uint32_t events);
  void again();
  Status on_control(std::uint16_t type, Buffer payload) override;
  Expected<Buffer> on_tensor_begin(const TensorHeader& header) override;
  Status on_tensor(const TensorHeader& header, Buffer bytes) override;

  void finish_connect();
  void sniff();
  void begin_tls();
  void shake();
  void open();
  void end(Status why);
  void leave();  // the shard's loop

  void read();
  Expected<std::size_t> receive(std::span<std::byte> window, std::span<std::byte> staging);
  void discard();
  void answer_tls();

  void enqueue(Item item, std::uint64_t bytes);
  void pump();
  void flush();
  bool may_send_inline();
  Expected<std::size_t> transmit(std::span<const iovec> pieces);
  void account(std::uint64_t done);
  void apply_mask();

  Descriptor fd_;
  Owner& owner_;
  Setup setup_;
  IoShard* shard_ = nullptr;
  std::uint64_t shard_id_ = 0;
  std::atomic<Phase> phase_;
  std::atomic<bool> reading_{true};
  std::atomic<bool> held_{false};
  std::atomic<std::int64_t> heard_;

  // In a shared shard: held while a thread serves the connection. serving_: its events are armed
  // again afterwards.
  std::mutex serve_mutex_;
  std::atomic<bool> serving_{false};
  bool again_ = false;  // served once more first

  std::unique_ptr<TlsStream> tls_;
  std::mutex tls_mutex_;  // an SSL object serves one thread at a time
  Rx rx_;                 // the shard's thread

  std::atomic<std::uint64_t> bytes_sent_{0}, bytes_read_{0};

  std::mutex inbox_mutex_;
  std::vector<Item> inbox_;
  std::atomic<std::uint64_t> queued_{0};
  std::atomic<bool> above_mark_{false};

  std::atomic<std::uint32_t> work_{0};
  // Owned by the thread that raised work_ from zero.
  Tx tx_{TxOptions{}};
  std::vector<Item> taken_;
  std::atomic<bool> want_out_{false};
  bool broken_ = false;    // the socket accepts no more; reading will report why
  bool all_said_ = false;  // it lingers, and nothing more is sent
  int inline_credit_ = 0;
  Clock::time_point credit_time_{};

  std::mutex mask_mutex_;  // of the rest: what the shard waits for
  std::uint32_t mask_ = 0;
  std::atomic<bool> armed_{true};  // in a shared shard
};

}  // namespace troupe
