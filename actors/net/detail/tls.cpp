#include "actors/net/detail/tls.hpp"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "actors/net/socket.hpp"

namespace troupe {
namespace {

constexpr std::string_view kIdentity = "troupe";
constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};
constexpr std::size_t kReadBuffer = 256u << 10;

std::string openssl_error() {
  unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "no reason given";
  char text[256];
  ERR_error_string_n(code, text, sizeof text);
  const char* reason = ERR_reason_error_string(code);
  return reason ? reason : text;
}

}  // namespace

void random_bytes(std::span<std::byte> out) {
  int ok = RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), int(out.size()));
  TROUPE_CHECK(ok == 1, "the system has random bytes");
}

struct TlsContext::State {
  std::string secret;
  SSL_CTX* context = nullptr;
  BIO_METHOD* socket = nullptr;

  ~State() {
    SSL_CTX_free(context);
    BIO_meth_free(socket);
  }
};

namespace {

using ContextState = std::string;  // the secret, what the callbacks need

SSL_SESSION* session_of_secret(SSL* ssl) {
  auto* secret = static_cast<const ContextState*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, kAes128GcmSha256);
  SSL_SESSION* session = SSL_SESSION_new();
  auto* key = reinterpret_cast<const unsigned char*>(secret->data());
  if (session == nullptr || cipher == nullptr ||
      SSL_SESSION_set1_master_key(session, key, secret->size()) != 1 ||
      SSL_SESSION_set_cipher(session, cipher) != 1 ||
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) != 1) {
    SSL_SESSION_free(session);
    return nullptr;
  }
  return session;
}

int client_secret(SSL* ssl, const EVP_MD*, const unsigned char** id, std::size_t* id_size,
                  SSL_SESSION** session) {
  *session = session_of_secret(ssl);
  *id = reinterpret_cast<const unsigned char*>(kIdentity.data());
  *id_size = kIdentity.size();
  return *session != nullptr;
}

int server_secret(SSL* ssl, const unsigned char* id, std::size_t id_size, SSL_SESSION** session) {
  *session = nullptr;
  std::string_view identity(reinterpret_cast<const char*>(id), id_size);
  if (identity != kIdentity) return 1;  // unknown: without a certificate the handshake fails
  *session = session_of_secret(ssl);
  return *session != nullptr;
}

Status use_certificates(SSL_CTX* context, const Security& s) {
  auto check = [](int result, const std::string& what) {
    return result == 1 ? Status{} : invalid_argument(fmt::format("{}: {}", what, openssl_error()));
  };
  TROUPE_TRY(check(SSL_CTX_use_certificate_chain_file(context, s.certificate_file.c_str()),
                   "certificate " + s.certificate_file));
  TROUPE_TRY(check(SSL_CTX_use_PrivateKey_file(context, s.key_file.c_str(), SSL_FILETYPE_PEM),
                   "key " + s.key_file));
  TROUPE_TRY(check(SSL_CTX_check_private_key(context), "key " + s.key_file));
  TROUPE_TRY(check(SSL_CTX_load_verify_file(context, s.authority_file.c_str()),
                   "authority " + s.authority_file));
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return {};
}

}  // namespace

// The socket as OpenSSL sees it: reads go to the kernel, writes to the stream's own buffer.
struct TlsSocket {
  static TlsStream& stream(BIO* bio) { return *static_cast<TlsStream*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* into, int size) {
    TlsStream& s = stream(bio);
    BIO_clear_retry_flags(bio);
    if (s.without_data_ > TlsStream::kMostWithoutData) return -1;
    ssize_t n = 0;
    do n = ::recv(s.fd_, into, std::size_t(size), 0);
    while (n < 0 && errno == EINTR);
    if (n > 0) return int(n);
    if (n == 0) {
      s.end_of_input_ = true;
      return 0;
    }
    s.drained_ = errno == EAGAIN || errno == EWOULDBLOCK;
    if (s.drained_)
      BIO_set_retry_read(bio);
    else
      s.read_error_ = errno;
    return -1;
  }

  static int write(BIO* bio, const char* from, int size) {
    TlsStream& s = stream(bio);
    BIO_clear_retry_flags(bio);
    // Answers to a peer that asks for them without end, and reads none.
    if (s.out_.size() - s.sent_ > 2 * TlsStream::kOutRoom) return -1;
    auto* bytes = reinterpret_cast<const std::byte*>(from);
    s.out_.insert(s.out_.end(), bytes, bytes + size);
    return size;
  }

  static void message(int sent, int, int type, const void*, std::size_t, SSL*, void* s) {
    if (!sent && type == SSL3_RT_HANDSHAKE) ++static_cast<TlsStream*>(s)->without_data_;
  }

  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH; }
};

TlsContext::TlsContext(std::unique_ptr<State> state) : state_(std::move(state)) {}
TlsContext::~TlsContext() = default;

Expected<std::unique_ptr<TlsContext>> TlsContext::make(const Security& security) {
  TROUPE_CHECK(security.mode != Security::Mode::plaintext, "plaintext needs no TLS");
  auto state = std::make_unique<State>();
  state->context = SSL_CTX_new(TLS_method());
  state->socket = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "troupe socket");
  if (state->context == nullptr || state->socket == nullptr)
    return resource_exhausted("OpenSSL: " + openssl_error());
  BIO_meth_set_read(state->socket, TlsSocket::read);
  BIO_meth_set_write(state->socket, TlsSocket::write);
  BIO_meth_set_ctrl(state->socket, TlsSocket::control);

  SSL_CTX* c = state->context;
  SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256");
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(c, 0);
  SSL_CTX_clear_options(c, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Else a read goes on while records without data come.
  SSL_CTX_clear_mode(c, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_read_ahead(c, 1);
  SSL_CTX_set_default_read_buffer_len(c, kReadBuffer);
  SSL_CTX_set_max_cert_list(c, 32 << 10);

  if (security.mode == Security::Mode::secret) {
    if (security.secret.size() < 16 || security.secret.size() > 64)
      return invalid_argument("a shared secret has 16 to 64 bytes");
    state->secret = security.secret;
    SSL_CTX_set_app_data(c, &state->secret);
    SSL_CTX_set_psk_use_session_callback(c, client_secret);
    SSL_CTX_set_psk_find_session_callback(c, server_secret);
  } else {
    TROUPE_TRY(use_certificates(c, security));
  }
  return std::unique_ptr<TlsContext>(new TlsContext(std::move(state)));
}

TlsStream::TlsStream(const TlsContext& context, int fd, bool server)
    : ssl_(SSL_new(context.state_->context), [](void* s) { SSL_free(static_cast<SSL*>(s)); }),
      fd_(fd) {
  auto* ssl = static_cast<SSL*>(ssl_.get());
  BIO* bio = BIO_new(context.state_->socket);
  TROUPE_CHECK(ssl != nullptr && bio != nullptr, "OpenSSL has memory for a connection");
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  SSL_set_msg_callback(ssl, TlsSocket::message);
  SSL_set_msg_callback_arg(ssl, this);
  if (server) {
    SSL_set_accept_state(ssl);
    return;
  }
  SSL_set_connect_state(ssl);
  // A server that shows a certificate instead of knowing the secret is nobody.
  if (!context.state_->secret.empty())
    SSL_set_verify(ssl, SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 0; });
}

TlsStream::~TlsStream() = default;

Status TlsStream::failure(const char* doing, int result) {
  int kind = SSL_get_error(static_cast<SSL*>(ssl_.get()), result);
  if (read_error_ != 0) return errno_status(doing, read_error_);
  if (without_data_ > kMostWithoutData)
    return failed_precondition(
        fmt::format("the peer sent {} messages of TLS and no data", without_data_));
  if (kind == SSL_ERROR_ZERO_RETURN || end_of_input_) {
    ERR_clear_error();
    return unavailable("the peer closed the connection");
  }
  return failed_precondition(fmt::format("{}: {}", doing, openssl_error()));
}

Expected<bool> TlsStream::handshake() {
  auto* ssl = static_cast<SSL*>(ssl_.get());
  ERR_clear_error();
  int result = SSL_do_handshake(ssl);
  Status failed;
  if (result != 1) {
    int kind = SSL_get_error(ssl, result);
    if (kind != SSL_ERROR_WANT_READ && kind != SSL_ERROR_WANT_WRITE)
      failed = failure("TLS handshake (do both sides hold the same secret or authority?)", result);
  }
  auto flushed = flush();  // also the alert that tells the peer why
  if (!failed.ok()) return failed;
  if (!flushed.ok()) return flushed.status();
  return result == 1;
}

Expected<std::size_t> TlsStream::read(std::span<std::byte> into) {
  auto* ssl = static_cast<SSL*>(ssl_.get());
  for (;;) {
    ERR_clear_error();
    std::size_t n = 0;
    drained_ = false;
    int result = SSL_read_ex(ssl, into.data(), into.size(), &n);
    if (result == 1) {
      without_data_ = 0;
      return n;
    }
    int kind = SSL_get_error(ssl, result);
    if (kind != SSL_ERROR_WANT_READ && kind != SSL_ERROR_WANT_WRITE) return failure("read", result);
    if (drained_) return std::size_t{0};  // else it has handled what was no data
  }
}

bool TlsStream::may_hold_input() const {
  return SSL_has_pending(static_cast<const SSL*>(ssl_.get())) == 1;
}

// Room for one record, so that OpenSSL never meets a full buffer. A failure shows in flush().
bool TlsStream::make_room() {
  const auto full = [&] { return out_.size() - sent_ + kRecord + kOverhead > kOutRoom; };
  if (full()) (void)flush();
  return !full();
}

Expected<std::size_t> TlsStream::put(std::span<const std::byte> record) {
  auto* ssl = static_cast<SSL*>(ssl_.get());
  ERR_clear_error();
  if (++records_ % kRecordsPerKey == 0) SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
  std::size_t n = 0;
  int result = SSL_write_ex(ssl, record.data(), record.size(), &n);
  if (result != 1) return failure("write", result);
  TROUPE_CHECK(n == record.size(), "a record is written whole");
  return n;
}

Expected<std::size_t> TlsStream::write(std::span<const iovec> pieces) {
  std::size_t taken = 0;
  auto flush_small = [&]() -> Status {
    if (small_.empty()) return {};
    TROUPE_TRY(auto n, put(small_));
    taken += n;
    small_.clear();
    return {};
  };
  for (const iovec& piece : pieces) {
    std::span<const std::byte> rest(static_cast<const std::byte*>(piece.iov_base), piece.iov_len);
    while (!rest.empty()) {
      // Pieces share a record as long as they fit; long ones make records of their own.
      if (small_.empty() && !make_room()) return taken;
      std::size_t n = std::min(rest.size(), kRecord - small_.size());
      if (small_.empty() && n == kRecord) {
        TROUPE_TRY(auto whole, put(rest.first(n)));
        taken += whole;
      } else {
        small_.insert(small_.end(), rest.begin(), rest.begin() + std::ptrdiff_t(n));
        if (small_.size() == kRecord) TROUPE_TRY(flush_small());
      }
      rest = rest.subspan(n);
    }
  }
  TROUPE_TRY(flush_small());
  return taken;
}

Expected<bool> TlsStream::flush() {
  while (unsent()) {
    ssize_t n = ::send(fd_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n < 0) return errno_status("send", errno);
    sent_ += std::size_t(n);
  }
  // What is left, less than kOutRoom, moves to the front only after as many bytes were sent: the
  // buffer holds about twice that at most.
  if (!unsent() || sent_ >= kOutRoom) {
    out_.erase(out_.begin(), out_.begin() + std::ptrdiff_t(sent_));
    sent_ = 0;
  }
  return !unsent();
}

}  // namespace troupe
