#include "devices/fake/fake_device.hpp"

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/float_environment.hpp"
#include "devices/arena.hpp"
#include "devices/detail/host_copy.hpp"
#include "devices/detail/progress.hpp"
#include "devices/fake/fake_memory.hpp"
#include "devices/kernel_call.hpp"
#include "devices/named_work.hpp"

namespace troupe {
namespace {

class FakeStream;

// The state that the streams of one device share. One mutex for all: simple, and fast enough here.
struct Shared {
  Shared(DeviceName device, const FakeOptions& o) : name(std::move(device)), options(o) {}

  const DeviceName name;
  const FakeOptions options;
  const FakeMemoryPtr memory{new FakeMemory(options.memory)};
  std::mutex mutex;  // guards what follows, and the queues of all streams
  std::condition_variable changed;
  std::vector<FakeStream*> streams;
  std::uint64_t items = 0;  // issued so far, on all streams
  bool hurry = false;       // shutting down: no more delays
  bool stopping = false;
};

class FakeStream final : public HostStream {
 public:
  FakeStream(Shared& shared, std::uint32_t id)
      : shared_(shared), id_(id), random_(shared.options.seed * 31 + id), progress_(id) {
    thread_ = std::thread([this] { run(); });  // which waits for the mutex
    shared_.streams.push_back(this);
  }
  ~FakeStream() override { thread_.join(); }  // after shared_.stopping

  std::uint32_t id() const override { return id_; }
  Ticket enqueue(std::function<Status()> work) override;
  Ticket mark() override {
    return enqueue([] { return ok_status(); });
  }
  void wait(Ticket ticket) override;
  Ticket last() const override;
  void on_complete(std::uint64_t sequence, std::function<void(Status)> done);

  // With the mutex held:
  bool idle() const { return progress_.idle(); }
  const detail::StreamProgress& progress() const { return progress_; }

 private:
  struct Item {
    std::uint64_t sequence;
    std::function<Status()> work;
    std::vector<Ticket> after;
  };
  void run();
  Status run_item(Item& item, std::unique_lock<std::mutex>& lock);
  void delay();

  Shared& shared_;
  const std::uint32_t id_;
  std::mt19937_64 random_;  // for its own thread
  std::deque<Item> items_;
  std::vector<Ticket> awaited_;  // by the next item
  detail::StreamProgress progress_;
  std::thread thread_;
};

Ticket FakeStream::enqueue(std::function<Status()> work) {
  NamedWork::count_issued(id_);
  std::lock_guard lock(shared_.mutex);
  const Ticket ticket = progress_.issue();
  if (++shared_.items == shared_.options.fail_at)
    work = [] { return internal_error("a failure injected into the device"); };
  items_.push_back({ticket.sequence, std::move(work), std::exchange(awaited_, {})});
  shared_.memory->issued(id_, ticket.sequence);
  shared_.changed.notify_all();
  return ticket;
}

void FakeStream::wait(Ticket ticket) {
  if (ticket.complete() || ticket.stream == id_) return;
  std::lock_guard lock(shared_.mutex);
  TROUPE_CHECK(ticket.stream < shared_.streams.size(), "a ticket of another device");
  awaited_.push_back(ticket);
}

Ticket FakeStream::last() const {
  std::lock_guard lock(shared_.mutex);
  return progress_.last();
}

void FakeStream::on_complete(std::uint64_t sequence, std::function<void(Status)> done) {
  std::unique_lock lock(shared_.mutex);
  progress_.on_complete(lock, sequence, std::move(done));
}

void FakeStream::run() {
  const FloatEnvironment not_that_of_who_made_the_device;
  std::unique_lock lock(shared_.mutex);
  for (;;) {
    shared_.changed.wait(lock, [&] { return !items_.empty() || shared_.stopping; });
    if (items_.empty()) return;
    Item item = std::move(items_.front());
    items_.pop_front();
    Status status = run_item(item, lock);
    shared_.memory->done(id_, item.sequence);
    progress_.finish(item.sequence, std::move(status));
    shared_.changed.notify_all();
    progress_.call_back(lock);
    shared_.changed.notify_all();
  }
}

// Waits, delays, then runs the work; without the lock where that takes time.
Status FakeStream::run_item(Item& item, std::unique_lock<std::mutex>& lock) {
  Status status;
  for (const Ticket& t : item.after) {
    const FakeStream& other = *shared_.streams[t.stream];
    shared_.changed.wait(lock, [&] { return other.progress_.reached(t.sequence); });
    if (status.ok()) status = other.progress_.status_of(t.sequence);
  }
  const bool run = status.ok() && !progress_.failed();
  const bool dawdle = !shared_.hurry;
  lock.unlock();
  if (dawdle) delay();
  if (run) try {
      status = item.work();
    } catch (...) {
      status = status_of_exception();
    }
  // The work's captures are destroyed before it counts as over.
  item.work = nullptr;
  if (!status.ok())
    status = status.in("in work " + std::to_string(item.sequence) + " of stream " +
                       std::to_string(id_) + " on " + shared_.name.text());
  lock.lock();
  return status;
}

void FakeStream::delay() {
  const auto most = std::uint64_t(shared_.options.max_delay.count());
  // Runs of work without delay are as likely to reveal a bug as stalls.
  if (most == 0 || random_() % 4 == 0) return;
  std::this_thread::sleep_for(std::chrono::microseconds(random_() % (most + 1)));
}

class Fake final : public FakeDevice {
 public:
  Fake(DeviceName name, const FakeOptions& options)
      : shared_(std::move(name), options),
        host_arena_(make_arena(options.host_memory_cap)),
        lanes_(std::make_unique<detail::LanePool>(options.lanes)) {
    TROUPE_CHECK(shared_.name.full(), "a device has a full name");
    TROUPE_CHECK(options.streams >= 1 && options.streams <= int(FakeMemory::kStreams),
                 "a fake device has 1 to 8 streams");
    std::lock_guard lock(shared_.mutex);  // the streams' threads wait until all of them exist
    try {
      for (int i = 0; i < options.streams; ++i)
        streams_.push_back(std::make_unique<FakeStream>(shared_, std::uint32_t(i)));
    } catch (...) {  // there is no thread for one of them
      shared_.stopping = true;
      throw;
    }
  }
  ~Fake() override { shut_down(); }

  const DeviceName& name() const override { return shared_.name; }
  MemorySpace space() const override { return MemorySpace::device; }
  Allocator& allocator() override { return *shared_.memory; }
  Allocator& host_allocator() override { return *host_arena_; }
  HostStream& stream() override { return *streams_[0]; }
  HostStream& stream(int index) override { return *streams_.at(std::size_t(index)); }
  int streams() const override { return int(streams_.size()); }

  void launch(std::function<void(Lanes&)> burst) override { lanes_->launch(std::move(burst)); }
  Ticket copy(const Tensor& src, Tensor dst) override;
  void on_complete(Ticket ticket, std::function<void(Status)> done) override;
  Tensor alias(const Tensor& tensor) const override;

  std::size_t memory_size() const override { return shared_.options.memory; }
  std::size_t bytes_in_use() const override { return shared_.memory->bytes_in_use(); }
  std::size_t peak_bytes() const override { return shared_.memory->peak_bytes(); }
  void reset_peak() override { shared_.memory->reset_peak(); }

 private:
  void shut_down();

  Shared shared_;
  const ArenaPtr host_arena_;
  std::vector<std::unique_ptr<FakeStream>> streams_;
  std::unique_ptr<detail::LanePool> lanes_;
};

Ticket Fake::copy(const Tensor& src, Tensor dst) {
  detail::check_copy(src, dst);
  FakeStream& stream = *streams_.back();
  stream.wait(streams_[0]->last());
  return stream.enqueue([this, src, dst] {
    detail::copy_elements(alias(src), alias(dst));
    return ok_status();
  });
}

void Fake::on_complete(Ticket ticket, std::function<void(Status)> done) {
  if (ticket.complete()) return done(ok_status());
  streams_.at(ticket.stream)->on_complete(ticket.sequence, std::move(done));
}

Tensor Fake::alias(const Tensor& tensor) const {
  if (!tensor.defined() || tensor.space() == MemorySpace::host) return tensor;
  const Buffer& buffer = tensor.buffer();
  return Tensor(tensor.dtype(), tensor.shape(),
                Buffer::wrap_own(shared_.memory->view(buffer.data()), buffer.size(),
                                 MemorySpace::host, nullptr, nullptr),
                tensor.offset());
}

void Fake::shut_down() {
  const auto idle = [&] {
    for (auto& stream : streams_)
      if (!stream->idle()) return false;
    return true;
  };
  std::unique_lock lock(shared_.mutex);
  shared_.hurry = true;
  detail::drain(*lanes_, lock, shared_.changed, idle);
  shared_.stopping = true;
  lock.unlock();
  shared_.changed.notify_all();
  streams_.clear();
  lanes_.reset();
}

}  // namespace

std::unique_ptr<FakeDevice> make_fake_device(DeviceName name, FakeOptions options) {
  return std::make_unique<Fake>(std::move(name), options);
}

HostStream& host_stream(Device& device) {
  auto* fake = dynamic_cast<FakeDevice*>(&device);
  TROUPE_CHECK(fake != nullptr, "host_stream() wants a fake device");
  return fake->stream();
}

Tensor device_alias(const Device& device, const Tensor& tensor) {
  const auto* fake = dynamic_cast<const FakeDevice*>(&device);
  TROUPE_CHECK(fake != nullptr, "device_alias() wants a fake device");
  return fake->alias(tensor);
}

}  // namespace troupe
