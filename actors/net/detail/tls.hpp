// TLS 1.3 as a pair of byte streams over a non-blocking socket. The only file pair that uses
// OpenSSL.
#pragma once

#include <sys/uio.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actors/net/transport.hpp"

namespace troupe {

class TlsStream;

// Unpredictable bytes.
void random_bytes(std::span<std::byte> out);

// The credentials of this process, and what it requires of peers. Immutable; outlives its streams.
class TlsContext {
 public:
  // REQUIRES: security.mode is not plaintext. invalid_argument for a secret that is not 16 to 64
  // bytes long, files that cannot be read, a key that does not belong to its certificate.
  static Expected<std::unique_ptr<TlsContext>> make(const Security& security);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsStream;
  struct State;
  explicit TlsContext(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// One connection. Used by one thread at a time. Reads ahead and writes behind through buffers of
// its own, since records are small and system calls are not free.
class TlsStream {
 public:
  // The socket stays the caller's, and open as long as the stream.
  TlsStream(const TlsContext& context, int fd, bool server);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // Continues the handshake as far as the socket allows: true when it is complete.
  Expected<bool> handshake();
  // Bytes read; 0: none now; unavailable: the peer closed the connection.
  Expected<std::size_t> read(std::span<std::byte> into);
  // Bytes taken of the pieces, from the start; 0: no room now.
  Expected<std::size_t> write(std::span<const iovec> pieces);
  // Sends what write() left behind; false: some is left.
  Expected<bool> flush();
  bool unsent() const { return sent_ < out_.size(); }
  bool may_hold_input() const;  // read() might succeed although the socket has nothing

 private:
  friend struct TlsSocket;
  static constexpr std::size_t kRecord = 16u << 10;
  static constexpr std::size_t kOverhead = 256;  // of a record, generously
  static constexpr std::size_t kOutRoom = 256u << 10;
  // AES-GCM keys wear out after about 2^24 full records; they are changed long before.
  static constexpr std::uint64_t kRecordsPerKey = std::uint64_t{1} << 22;

  bool make_room();
  Expected<std::size_t> put(std::span<const std::byte> record);
  Status failure(const char* doing, int result);

  std::unique_ptr<void, void (*)(void*)> ssl_;
  int fd_;
  int read_error_ = 0;
  bool end_of_input_ = false;
  bool drained_ = false;  // the socket had nothing more when it was read last
  // Messages of TLS itself, such as updates of keys, since there were data. A peer that sends nothing
  // else would keep the thread of all connections: OpenSSL handles all that one read of the socket
  // has, and then it ends.
  static constexpr int kMostWithoutData = 32;
  int without_data_ = 0;
  std::uint64_t records_ = 0;
  std::vector<std::byte> out_;  // the first sent_ bytes of it are sent
  std::size_t sent_ = 0;
  std::vector<std::byte> small_;  // pieces that share a record
};

}  // namespace troupe
