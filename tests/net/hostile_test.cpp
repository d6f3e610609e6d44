#include <doctest/doctest.h>

#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "actors/net/crc32c.hpp"
#include "actors/net/tcp.hpp"
#include "tests/net/peers.hpp"
#include "tests/net/raw_client.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kMostGrowth = 64u << 20;

TransportLimits quick_limits() {
  TransportLimits limits;
  limits.handshake = 300ms;
  return limits;
}

// Who says something in the end is not shown out for being slow.
TransportLimits patient_limits() {
  TransportLimits limits;
  limits.handshake = 1h;
  return limits;
}

// A listener that grants small tensors.
struct Victim {
  explicit Victim(const Security& security, TransportLimits limits = quick_limits())
      : security(security), transport(make_tcp_transport(security, limits, handler).value()) {
    handler.budget = 1u << 20;
    port = transport->listen({"127.0.0.1", 0}, "victim").value();
    before = resident_bytes();
  }
  ~Victim() {
    check_good_peer();
    std::uint64_t after = resident_bytes();
    CHECK(after <= before + kMostGrowth);
    transport->shutdown();
    CHECK(!handler.misused());
  }
  // Somebody honest still gets in and through.
  void check_good_peer() {
    RecordingHandler at;
    auto t = make_tcp_transport(security, {}, at).value();
    PeerId id = t->connect({"127.0.0.1", port}, "honest", 5s).value();
    bool up = at.wait_up(id);
    CHECK_MESSAGE(up, at.copy(id).why.text());
    CHECK(send_text(*t, id, "hello").ok());
    t->shutdown();
  }
  Security security;
  RecordingHandler handler;
  std::unique_ptr<Transport> transport;
  std::uint16_t port = 0;
  std::uint64_t before = 0;
};

std::string control_head(std::uint16_t type, std::uint32_t length) {
  std::string s(kControlHeader, '\0');
  encode(ControlFrameHeader{type, length},
         std::span<std::byte, kControlHeader>(reinterpret_cast<std::byte*>(s.data()), s.size()));
  return s;
}

std::string data_frame(std::string_view tag, std::string_view bytes) {
  Tx tx({});
  tx.push(tensor_of(tag, bytes));
  return drain(tx);
}

std::string with_byte(std::string s, std::size_t at, int value) {
  s[at] = char(value);
  return s;
}

// First words of strangers, all of which end in a closed connection.
std::vector<std::string> first_words() {
  std::string hello = hello_frame(), token(kTokenSize, 't');
  std::vector<std::string> all = {
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
      "SSH-2.0-OpenSSH_9.2\r\n",
      std::string(4096, '\0'),
      std::string(4096, '\xff'),
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(600, 'r'),
      std::string("\x16\x03\x03\xff\xff", 5) + std::string(70'000, 'r'),
      std::string("\x15\x03\x03\x00\x02\x02\x28", 7),
      std::string("TRC1", 4) + std::string(12, '\0'),
      std::string("TRD1", 4) + std::string(36, '\0'),
      data_frame("t", "bytes"),
      data_frame("t", std::string(100'000, 'x')),
      control_head(1, 4096),
      control_head(1, 0xffffffffu),
      control_head(7, 16u << 20),
      frame_of(FrameType::hello, ""),
      frame_of(FrameType::hello, std::string(44, '\0')),
      frame_of(FrameType::hello, std::string(45, '\0')),
      frame_of(FrameType::hello, std::string(45, '\xff')),
      frame_of(FrameType::hello, std::string(4000, 'x')),
      frame_of(FrameType::hello, encode(Greeting{0, 0, false, {}, "no room"})),
      frame_of(FrameType::attach, ""),
      frame_of(FrameType::attach, "short"),
      frame_of(FrameType::attach, token),
      frame_of(FrameType::attach, token + "x"),
      frame_of(FrameType(0), ""),
      frame_of(FrameType(8), "x"),
      frame_of(FrameType(65535), "x"),
      hello_frame("refuse me"),
  };
  for (FrameType type : {FrameType::welcome, FrameType::ready, FrameType::heartbeat, FrameType::bye,
                         FrameType::message}) {
    all.push_back(frame_of(type, ""));
    all.push_back(frame_of(type, "payload"));
    all.push_back(hello + frame_of(type, "payload"));
    all.push_back(hello + frame_of(type, ""));
  }
  // A bye after hello is a goodbye, and closes too. A second hello, or data, does not belong there.
  all.push_back(hello + hello);
  all.push_back(hello + frame_of(FrameType::attach, token));
  all.push_back(hello + data_frame("t", "bytes"));
  all.push_back(hello + "garbage that is no frame");
  for (std::size_t i = 0; i < kControlHeader; ++i) {
    all.push_back(with_byte(hello, i, hello[i] ^ 0x01));
    all.push_back(with_byte(hello, i, hello[i] ^ 0x80));
    all.push_back(with_byte(hello, i, 0xff - i));
  }
  for (std::size_t i = kControlHeader; i < hello.size(); i += 3)
    all.push_back(with_byte(hello, i, hello[i] ^ 0x55));
  return all;
}

// What an admitted peer may try on its control connection.
std::vector<std::string> control_abuse() {
  std::vector<std::string> all = {
      control_head(7, (16u << 20) + 1),
      control_head(7, 0xffffffffu),
      frame_of(FrameType::hello, "again"),
      frame_of(FrameType::welcome, "you too"),
      frame_of(FrameType::attach, std::string(kTokenSize, 't')),
      frame_of(FrameType::ready, ""),
      frame_of(FrameType::heartbeat, ""),
      frame_of(FrameType::heartbeat, std::string(25, '\xff')),
      frame_of(FrameType::bye, ""),
      frame_of(FrameType::bye, std::string(1, '\0')),
      frame_of(FrameType::bye, "\x7f what"),
      frame_of(FrameType::bye, std::string("\x01", 1) + std::string(100'000, 'x')),
      frame_of(FrameType(99), "x"),
      data_frame("t", "on the wrong connection"),
      "garbage, sixteen bytes and more",
  };
  std::string message = frame_of(FrameType::message, "a message");
  for (std::size_t i = 0; i < message.size(); ++i) {
    if (i == 6 || i == 7) continue;  // its checksum covers the type too: the next line has it
    all.push_back(with_byte(message, i, message[i] ^ 0x10));
  }
  all.push_back(with_byte(message, 6, message[6] ^ 0x10));
  return all;
}

std::string forged(DataFrameHeader header) {
  std::string s(kDataHeader + header.tag_length, 'x');
  encode(header, {reinterpret_cast<std::byte*>(s.data()), s.size()});
  return s + std::string(std::min<std::uint64_t>(header.length, 4096) + kTrailer, 'x');
}

std::vector<std::string> data_abuse() {
  std::string frame = data_frame("tag", "some bytes of a tensor");
  std::vector<std::string> all = {
      frame_of(FrameType::message, "on the wrong connection"),
      frame_of(FrameType::heartbeat, ""),
      forged({.trailer = true, .total = (1u << 20) + 1, .length = 1}),
      forged({.trailer = true, .total = ~std::uint64_t{0}, .length = 1}),
      forged({.trailer = true, .total = 10, .length = 11}),
      forged({.trailer = true, .total = 10, .offset = 5, .length = 5}),
      forged({.trailer = true, .transfer = 1, .total = 10, .length = 10}),
      forged({.trailer = true, .transfer = ~std::uint64_t{0}, .total = 10, .length = 10}),
      forged({.trailer = true, .total = 10, .offset = ~std::uint64_t{0}, .length = 10}),
      forged({.trailer = false, .total = 10, .length = 10}),
      forged({.trailer = true, .tag_length = 257, .total = 10, .length = 10}),
      forged({.trailer = true, .total = 1u << 20, .length = (16u << 20) + 1}),
      forged({.trailer = true, .total = 10, .length = 0}),
      frame + frame,
  };
  for (std::size_t i = 0; i < frame.size(); i += 2)
    all.push_back(with_byte(frame, i, frame[i] ^ 0x04));
  return all;
}

}  // namespace

TEST_CASE("strangers who say something wrong are shown out") {
  for (bool secret : {false, true}) {
    Victim v(secret ? Security::shared_secret("0123456789abcdef") : Security::plaintext());
    std::size_t tried = 0;
    for (const std::string& words : first_words()) {
      ++tried;
      INFO("input " << tried << (secret ? " of a secret listener" : ""));
      RawClient c(v.port);
      c.send(words);
      CHECK(c.closed());
    }
    MESSAGE(tried << " inputs");
  }
}

TEST_CASE("admitted peers who say something wrong are closed on both connections") {
  Victim v(Security::plaintext(), patient_limits());
  std::size_t tried = 0;
  for (bool data : {false, true}) {
    for (const std::string& words : data ? data_abuse() : control_abuse()) {
      ++tried;
      INFO("input " << tried << (data ? " of data" : " of control"));
      RawClient control(v.port), tensors(v.port);
      tensors.send(frame_of(FrameType::attach, greet(control)));
      FrameType type{};
      control.frame(&type);
      REQUIRE(type == FrameType::ready);
      (data ? tensors : control).send(words);
      CHECK(control.closed());
      CHECK(tensors.closed());
    }
  }
  MESSAGE(tried << " inputs");
}

TEST_CASE("a peer that was let in and is lost before it is up is mentioned again") {
  Victim v(Security::plaintext(), patient_limits());
  {
    RawClient leaves(v.port);
    greet(leaves);
  }
  auto told = [&] {
    auto& all = v.handler.all();
    return all.size() == 1 && all.begin()->second.down && !all.begin()->second.up;
  };
  CHECK(v.handler.wait(told));
}

TEST_CASE("a held peer whose data connection breaks is down, not looked at for ever") {
  Victim v(Security::plaintext(), patient_limits());
  RawClient control(v.port);
  {
    RawClient tensors(v.port);
    tensors.send(frame_of(FrameType::attach, greet(control)));
    FrameType type{};
    control.frame(&type);
    REQUIRE(type == FrameType::ready);
    v.transport->hold_tensors(v.handler.only(), true);
  }
  Status why = v.handler.wait_down(v.handler.only());
  CHECK_MESSAGE(why.text().find("closed the connection") != std::string::npos, why.text());
}

TEST_CASE("a token opens one data connection, once") {
  Victim v(Security::plaintext(), patient_limits());
  RawClient control(v.port), first(v.port), second(v.port);
  std::string token = greet(control);
  first.send(frame_of(FrameType::attach, token));
  FrameType type{};
  control.frame(&type);
  CHECK(type == FrameType::ready);
  second.send(frame_of(FrameType::attach, token));
  CHECK(second.closed());
  PeerId id = v.handler.only();
  first.send(data_frame("t", "the first connection still works"));
  CHECK(v.handler.wait([&] { return v.handler.log(id).tensors.size() == 1; }));
}

TEST_CASE("whoever connects and says nothing, or half of it, is shown out in time") {
  Victim v(Security::plaintext());
  RawClient silent(v.port), half(v.port), waiting(v.port);
  half.send(hello_frame().substr(0, 20));
  greet(waiting);  // and never attaches
  CHECK(silent.closed());
  CHECK(half.closed());
  CHECK(waiting.closed());
}

TEST_CASE("a crowd of strangers who say nothing keeps out nobody who knows the secret") {
  TransportLimits limits;
  limits.handshake = std::chrono::hours(1);  // nobody leaves by himself
  Victim v(Security::shared_secret("0123456789abcdef"), limits);
  std::vector<std::unique_ptr<RawClient>> crowd;
  for (int i = 0; i < 140; ++i) crowd.push_back(std::make_unique<RawClient>(v.port));
  v.check_good_peer();
}

TEST_CASE("strangers who are closed and come again keep out nobody who knows the secret") {
  TransportLimits limits;
  limits.handshake = std::chrono::hours(1);
  Victim v(Security::shared_secret("0123456789abcdef"), limits);
  std::atomic<bool> over{false};
  std::thread crowd([&] {
    std::deque<std::unique_ptr<RawClient>> here;
    while (!over) {
      here.push_back(std::make_unique<RawClient>(v.port));
      if (here.size() > 140) here.pop_front();
    }
  });
  v.check_good_peer();
  over = true;
  crowd.join();
}

TEST_CASE("where one address fills the waiting room the oldest makes room") {
  TransportLimits limits;
  limits.handshake = std::chrono::hours(1);
  limits.strangers_per_address = 5;
  Victim v(Security::plaintext(), limits);
  std::deque<std::unique_ptr<RawClient>> waiting;
  for (int i = 0; i < 5; ++i) waiting.push_back(std::make_unique<RawClient>(v.port));
  for (int i = 0; i < 20; ++i) {
    waiting.push_back(std::make_unique<RawClient>(v.port));
    CHECK(waiting.front()->closed());
    waiting.pop_front();
  }
  greet(*waiting.front());  // of those that are left nobody was closed
}

TEST_CASE("a claimed length costs no memory") {
  Victim v(Security::plaintext(), patient_limits());
  std::vector<std::unique_ptr<RawClient>> peers;
  std::uint64_t before = resident_bytes();
  for (int i = 0; i < 16; ++i) {
    auto control = std::make_unique<RawClient>(v.port), data = std::make_unique<RawClient>(v.port);
    data->send(frame_of(FrameType::attach, greet(*control)));
    FrameType type{};
    control->frame(&type);
    REQUIRE(type == FrameType::ready);
    control->send(control_head(7, 16u << 20) + "a few bytes");
    data->send(forged({.trailer = true, .total = 1u << 20, .length = 1u << 20}));
    peers.push_back(std::move(control));
    peers.push_back(std::move(data));
  }
  CHECK(resident_bytes() - before < 32u << 20);
}

namespace {

// Connections that each send one mutated stream: a stranger's, or that of an admitted peer.
void storm(std::uint64_t seed, int rounds) {
  MESSAGE("seed " << seed);
  Random random(seed);
  TransportLimits limits = quick_limits();
  limits.handshake = 2000ms;
  Victim v(Security::plaintext(), limits);
  std::string hello = hello_frame();
  std::string message = frame_of(FrameType::message, std::string(200, 'm'));
  std::string tensor = data_frame("a tag of a tensor", std::string(300, 'x'));
  for (int round = 0; round < rounds; ++round) {
    INFO("seed " << seed << " round " << round);
    std::uint64_t kind = random.below(3);
    std::string words = kind == 0 ? hello : kind == 1 ? message + message : tensor + tensor;
    for (std::uint64_t i = 0, n = 1 + random.below(3); i < n; ++i) {
      std::size_t at = random.below(words.size());
      if (random.below(2) == 0) at %= 44;
      words[at] = char(random());
    }
    if (random.below(2) == 0) {  // repair the header's checksum, so that what is behind is reached
      auto* head = reinterpret_cast<std::byte*>(words.data());
      if (kind == 2) {
        std::size_t tag = load_le<std::uint16_t>(head + 6) % kMaxTensorTag;
        store_le(crc32c({head + kDataHeader, tag}, crc32c({head, 36})), head + 36);
      } else {
        store_le(crc32c({head, 12}), head + 12);
      }
    }
    RawClient control(v.port);
    if (kind == 0) {
      control.send(words);
    } else {
      std::string token = greet(control);
      RawClient data(v.port);
      data.send(frame_of(FrameType::attach, token));
      FrameType type{};
      control.frame(&type);
      REQUIRE(type == FrameType::ready);
      (kind == 1 ? control : data).send(words);
    }
    if (round % 1000 == 0) REQUIRE(resident_bytes() <= v.before + kMostGrowth);
  }
}

}  // namespace

TEST_CASE("2000 connections with mutated frames do no harm") { storm(1, 2'000); }
TEST_CASE("200000 connections with mutated frames do no harm [slow]") { storm(2, 200'000); }

namespace {

// 5 GB of address space over 64 MiB of shared pages, of which one page per MiB is private and
// holds the number of its MiB: real bytes, all different where a mistake would mix them up.
class LargeBytes {
 public:
  static constexpr std::uint64_t kMiB = 1u << 20, kSlice = 64 * kMiB;
  explicit LargeBytes(std::uint64_t size) : size_(size) {
    int fd = memfd_create("troupe-test", MFD_CLOEXEC);
    REQUIRE(fd >= 0);
    REQUIRE(ftruncate(fd, kSlice) == 0);
    void* space =
        mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(space != MAP_FAILED);
    data_ = static_cast<std::byte*>(space);
    void* whole = mmap(nullptr, kSlice, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(whole != MAP_FAILED);
    for (std::uint64_t i = 0; i < kSlice / 8; ++i) static_cast<std::uint64_t*>(whole)[i] = mix64(i);
    munmap(whole, kSlice);
    for (std::uint64_t at = 0; at < size; at += kSlice) {
      std::uint64_t n = std::min(kSlice, size - at);
      REQUIRE(mmap(data_ + at, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) !=
              MAP_FAILED);
    }
    ::close(fd);
    for (std::uint64_t at = 0; at < size; at += kMiB) std::memcpy(data_ + at, &at, sizeof at);
  }
  ~LargeBytes() { munmap(data_, size_); }
  // Whether `other` holds these bytes.
  bool equals(const std::byte* other) const { return std::memcmp(data_, other, size_) == 0; }
  std::byte* data() const { return data_; }

 private:
  std::uint64_t size_;
  std::byte* data_ = nullptr;
};

std::uint64_t read_kb(const char* path, std::string_view key) {
  std::ifstream file(path);
  std::string word;
  std::uint64_t kb = 0;
  while (file >> word) {
    if (word == key && file >> kb) return kb * 1024;
  }
  return 0;
}
std::uint64_t available_bytes() { return read_kb("/proc/meminfo", "MemAvailable:"); }
// Memory that only this process has: without the pages that LargeBytes shows many times.
std::uint64_t private_bytes() { return read_kb("/proc/self/status", "RssAnon:"); }

// Keeps the buffer itself: a copy would need another 5 GB.
class LargeReceiver : public RecordingHandler {
 public:
  Expected<Buffer> accept_tensor(PeerId, const TensorHeader& header) override {
    ++grants;
    return pool.take(header.bytes);
  }
  void tensor(PeerId, const TensorHeader&, Buffer bytes) override {
    {
      std::lock_guard lock(mutex);
      arrived.push_back(std::move(bytes));
    }
    changed.notify_all();
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Buffer> arrived;
  std::atomic<int> grants{0};
};

}  // namespace

TEST_CASE("a 5 GB tensor crosses in chunks, with a small one beside it [slow]") {
  constexpr std::uint64_t size = 5'000'000'001;
  if (available_bytes() < size + (std::uint64_t{2} << 30)) {
    MESSAGE("skipped: less than 7 GB of memory available");
    return;
  }
  LargeBytes bytes(size);
  LargeReceiver at_b;
  RecordingHandler at_a;
  auto a = make_tcp_transport(Security::plaintext(), {}, at_a).value();
  auto b = make_tcp_transport(Security::plaintext(), {}, at_b).value();
  std::uint16_t port = b->listen({"127.0.0.1", 0}, "b").value();
  PeerId to_b = a->connect({"127.0.0.1", port}, "a", 5s).value();
  REQUIRE(at_a.wait_up(to_b));
  std::uint64_t before = private_bytes();
  auto start = std::chrono::steady_clock::now();
  Buffer whole = Buffer::wrap(
      bytes.data(), size, MemorySpace::host, [](void*) {}, nullptr);
  REQUIRE(a->send_tensor(to_b, TensorHeader(as_bytes("large"), size), whole, 0).ok());
  REQUIRE(send_bytes(*a, to_b, "small", "overtakes").ok());
  {
    std::unique_lock lock(at_b.mutex);
    REQUIRE(at_b.changed.wait_for(lock, 120s, [&] { return at_b.arrived.size() == 2; }));
  }
  double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::uint64_t growth = private_bytes() - before;
  MESSAGE(fmt::format("{:.2f} GB/s, {:.0f} MB beside the tensor", double(size) / took / 1e9,
                      (double(growth) - double(size)) / 1e6));
  CHECK(at_b.arrived[0].size() == 9);
  CHECK(at_b.arrived[1].size() == size);
  CHECK(bytes.equals(static_cast<const std::byte*>(at_b.arrived[1].data())));
  // The tensor itself at the receiver, and little else: chunks are not gathered anywhere.
  CHECK(growth < size + (32u << 20));
  a->shutdown(), b->shutdown();
}
