// Many clients at queues of every kind and at a mutex, who cancel and close at any moment: nothing
// is lost, nothing is there twice, and each queue keeps its order.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <random>
#include <thread>

#include "core/hash.hpp"
#include "core/number.hpp"
#include "ops/api/queues.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::int64_t kCapacity = 16, kKept = 4, kMostAtOnce = 4;
const std::vector<DType> kNumbers{DType::i64, DType::i64};  // a priority, and a number of its own
constexpr std::size_t kKindCount = 4;
const char* const kKindNames[kKindCount] = {"fifo", "shuffle", "padding", "priority"};

std::int64_t priority_for(std::int64_t number) { return number % 5 - 2; }

// A queue, and steps that use it.
struct Line {
  std::string kind;
  bool padded = false;
  Output priority, number, priorities, numbers, n;
  Op put, put_many, close, cancel_and_close;
  std::vector<Output> one, many, up_to;
  CompiledStep putting, putting_many, taking, taking_many, taking_up_to, closing, cancelling;

  Line(Graph& g, const char* device, std::size_t which)
      : kind(kKindNames[which]), padded(kind == "padding") {
    auto there = g.with_device(device);
    const PartialShape each = padded ? PartialShape{-1} : PartialShape::scalar();
    const std::vector<PartialShape> shapes{PartialShape::scalar(), each};
    const Output q = make(g, shapes);
    priority = placeholder<std::int64_t>(g, {}, kind + "/priority");
    number = placeholder<std::int64_t>(g, each, kind + "/number");
    priorities = placeholder<std::int64_t>(g, {-1}, kind + "/priorities");
    numbers = placeholder<std::int64_t>(g, padded ? PartialShape{-1, -1} : PartialShape{-1},
                                        kind + "/numbers");
    n = placeholder<std::int64_t>(g, {}, kind + "/n");
    put = enqueue(q, {priority, number});
    put_many = enqueue_many(q, {priorities, numbers});
    one = dequeue(q, kNumbers, {.shapes = shapes});
    many = dequeue_many(q, n, kNumbers, {.shapes = shapes});
    up_to = dequeue_up_to(q, n, kNumbers, {.shapes = shapes});
    close = queue_close(q);
    cancel_and_close = queue_close(q, {.cancel_pending = true});
  }
  void compile(Session& s) {
    putting = s.compile({}, {put}, {priority, number});
    putting_many = s.compile({}, {put_many}, {priorities, numbers});
    taking = s.compile(one);
    taking_many = s.compile(many, {}, {n});
    taking_up_to = s.compile(up_to, {}, {n});
    closing = s.compile({}, {close});
    cancelling = s.compile({}, {cancel_and_close});
  }
  Output make(Graph& g, const std::vector<PartialShape>& shapes) const {
    if (kind == "shuffle")
      return random_shuffle_queue(
          g, kNumbers,
          {.shapes = shapes, .capacity = kCapacity, .min_after_dequeue = kKept, .seed = 11});
    if (kind == "padding") return padding_fifo_queue(g, kNumbers, shapes, {.capacity = kCapacity});
    if (kind == "priority")
      return priority_queue(g, kNumbers, {.shapes = shapes, .capacity = kCapacity});
    return fifo_queue(g, kNumbers, {.shapes = shapes, .capacity = kCapacity});
  }

  PendingRun start_put(const std::vector<std::int64_t>& all) const {
    if (all.size() == 1 && all[0] % 2 == 0) {
      const std::vector<std::int64_t> wide(std::size_t(1 + all[0] % 3), all[0]);
      return putting.start({Tensor::scalar(priority_for(all[0])),
                            padded ? Tensor::of<std::int64_t>({std::int64_t(wide.size())}, wide)
                                   : Tensor::scalar(all[0])});
    }
    const auto rows = std::int64_t(all.size()), width = padded ? 1 + all[0] % 3 : 1;
    std::vector<std::int64_t> firsts, wide;
    for (std::int64_t each : all) {
      firsts.push_back(priority_for(each));
      wide.insert(wide.end(), std::size_t(width), each);
    }
    const Shape shape = padded ? Shape{rows, width} : Shape{rows};
    return putting_many.start(
        {Tensor::of<std::int64_t>({rows}, firsts), Tensor::of<std::int64_t>(shape, wide)});
  }
  PendingRun start_take(std::int64_t how_many, bool up_to_so_many) const {
    if (how_many == 1 && !up_to_so_many) return taking.start();
    return (up_to_so_many ? taking_up_to : taking_many).start({Tensor::scalar(how_many)});
  }
  // The numbers of what was taken; 0 in place of an element that is not whole.
  std::vector<std::int64_t> numbers_of(const std::vector<Tensor>& got) const {
    const auto rows = got[0].elements();
    const std::int64_t width = rows == 0 ? 0 : got[1].elements() / rows;
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t* row = got[1].data<std::int64_t>() + i * width;
      bool whole = width > 0 && got[0].data<std::int64_t>()[i] == priority_for(row[0]);
      for (std::int64_t k = 1; k < width; ++k)
        whole = whole && (row[k] == row[0] || (padded && row[k] == 0));
      all.push_back(whole ? row[0] : 0);
    }
    return all;
  }
};

// What one client did, in its order.
struct Done {
  struct Entry {
    CommitNumber commit = 0;
    std::vector<std::int64_t> numbers;
  };
  std::vector<Entry> puts, takes;
  std::int64_t locked = 0, operations = 0, cancelled = 0;
  std::string surprise;  // what should not have happened
};

// One life of a session with 16 clients: two that put and two that take for each kind of queue.
class Round {
 public:
  Round(std::uint64_t seed, const Place& place, bool cancels)
      : seed_(seed),
        cancels_(cancels),
        counter_(variable_on(g_, place.first, "counter", Tensor::scalar<std::int64_t>(0))) {
    for (std::size_t k = 0; k < kKindCount; ++k)
      lines_.emplace_back(g_, k % 2 == 0 ? place.first : place.second, k);
    Op acquire;
    {
      auto there = g_.with_device(place.second);
      acquire = mutex_acquire(mutex(g_));
    }
    {
      auto locked = g_.with_control({acquire});
      add_ = assign(counter_, counter_ + std::int64_t{1});
    }
    s_.emplace(g_, place);
  }

  // Each producer has so many turns.
  void run(int turns) {
    Session& s = **s_;
    s.init();
    adding_ = s.compile({}, {add_});
    for (Line& line : lines_) {
      line.compile(s);
      check_order(line);
    }
    std::vector<std::thread> clients;
    done_.resize(4 * kKindCount);
    for (std::size_t c = 0; c < done_.size(); ++c)
      clients.emplace_back([this, c, turns] {
        Random random(mix64(seed_ + 77 * c));
        if (c % 4 < 2)
          produce(lines_[c / 4], c, turns, random);
        else
          consume(lines_[c / 4], c, random);
      });
    for (std::thread& client : clients) client.join();
    check(s);
  }
  std::int64_t operations() const { return sum(&Done::operations) + in_order_; }
  std::int64_t cancelled() const { return sum(&Done::cancelled); }

 private:
  std::int64_t sum(std::int64_t Done::*what) const {
    std::int64_t n = 0;
    for (const Done& each : done_) n += each.*what;
    return n;
  }

  // Whether the run committed; else why it did not, unless the client has called it off.
  bool ended(PendingRun run, Done& done, Random& random, std::vector<Tensor>* got, Status& why) {
    ++done.operations;
    const bool called_off = cancels_ && random.below(12) == 0;
    if (called_off) {
      for (std::uint64_t i = random.below(4); i > 0; --i) std::this_thread::yield();
      run.cancel();
    }
    auto result = run.try_get();
    commit_ = run.committed();
    if (result.ok()) {
      if (got) *got = std::move(result).value();
      return true;
    }
    if (called_off && result.status().code() == Code::cancelled)
      ++done.cancelled;
    else
      why = result.status();
    return false;
  }
  void lock_sometimes(Done& done, Random& random) {
    if (random.below(4) > 0) return;
    Status why;
    done.locked += ended(adding_.start(), done, random, nullptr, why);
    if (!why.ok()) done.surprise = why.text();
  }

  void produce(Line& line, std::size_t c, int turns, Random& random) {
    Done& done = done_[c];
    auto next = std::int64_t(c + 1) * 100'000'000;
    for (int turn = 0; turn < turns && done.surprise.empty(); ++turn) {
      lock_sometimes(done, random);
      std::vector<std::int64_t> numbers;
      for (std::uint64_t n = 1 + random.below(kMostAtOnce); n > 0; --n) numbers.push_back(++next);
      Status why;
      if (ended(line.start_put(numbers), done, random, nullptr, why))
        done.puts.push_back({commit_, numbers});
      else if (why.code() == Code::cancelled)
        return;  // the other one has closed the queue
      else if (!why.ok())
        done.surprise = why.text();
      if (random.below(std::uint64_t(turns)) == 0) break;  // closes early
    }
    const Status closed =
        (random.below(2) == 0 ? line.closing : line.cancelling).start().try_get().status();
    ++done.operations;
    if (!closed.ok() && closed.code() != Code::cancelled) done.surprise = closed.text();
  }
  void consume(Line& line, std::size_t c, Random& random) {
    Done& done = done_[c];
    bool draining = false;
    for (int surprises = 0; surprises < 100;) {  // or those who put would wait for ever
      lock_sometimes(done, random);
      const std::int64_t n = draining ? 1 : std::int64_t(1 + random.below(kMostAtOnce));
      Status why;
      std::vector<Tensor> got;
      if (ended(line.start_take(n, random.below(3) == 0), done, random, &got, why)) {
        done.takes.push_back({commit_, line.numbers_of(got)});
      } else if (why.code() == Code::out_of_range) {
        if (n == 1) return;
        draining = true;  // fewer than n are left
      } else if (!why.ok()) {
        done.surprise = why.text();
        ++surprises;
      }
    }
  }

  // By one client, what comes out of a new queue is what its kind says.
  void check_order(const Line& line) {
    CAPTURE(line.kind);
    Random random(mix64(seed_));
    std::vector<std::int64_t> there, out;
    for (int i = 0; i < 6; ++i) {
      std::vector<std::int64_t> numbers;
      for (std::uint64_t n = 1 + random.below(2); n > 0; --n)
        numbers.push_back(1'000 + std::int64_t(there.size() + numbers.size()));
      if (numbers.size() % 2 == 0) std::reverse(numbers.begin(), numbers.end());
      REQUIRE(line.start_put(numbers).try_get().ok());
      there.insert(there.end(), numbers.begin(), numbers.end());
      ++in_order_;
    }
    const std::size_t left = line.kind == "shuffle" ? std::size_t(kKept) : 0;
    while (out.size() + left < there.size()) {
      const std::size_t n = std::min(1 + random.below(3), there.size() - left - out.size());
      for (std::int64_t each : line.numbers_of(line.start_take(std::int64_t(n), false).get()))
        out.push_back(each);
      ++in_order_;
    }
    std::vector<std::int64_t> expected = there;
    if (line.kind == "priority")
      std::stable_sort(expected.begin(), expected.end(), [](std::int64_t a, std::int64_t b) {
        return priority_for(a) < priority_for(b);
      });
    if (line.kind == "shuffle") {
      std::sort(out.begin(), out.end());
      CHECK(std::adjacent_find(out.begin(), out.end()) == out.end());
      for (std::int64_t each : there)
        if (!std::binary_search(out.begin(), out.end(), each)) shuffled_left_.push_back(each);
    } else {
      CHECK(out == expected);
    }
  }

  void check(Session& s) {
    for (const Done& each : done_) CHECK_MESSAGE(each.surprise.empty(), each.surprise);
    for (std::size_t k = 0; k < kKindCount; ++k) check(lines_[k], k);
    CHECK(s.run({counter_})[0].item<std::int64_t>() == sum(&Done::locked));
    bool told = false;
    for (const std::string& line : s.describe()) {
      told = told || line.find("conflicts ") != std::string::npos;
      if (line.find("conflicts ") != std::string::npos)
        CHECK(line.find("conflicts 0,") != std::string::npos);
    }
    CHECK(told);
  }
  void check(const Line& line, std::size_t k) {
    CAPTURE(line.kind);
    std::vector<std::int64_t> put, taken;
    if (line.kind == "shuffle") put = shuffled_left_;
    // By commit, and inside it by place: in that order they entered.
    std::map<std::int64_t, std::pair<CommitNumber, std::size_t>> entered;
    for (std::size_t c = 4 * k; c < 4 * k + 4; ++c) {
      for (const Done::Entry& e : done_[c].puts)
        for (std::size_t i = 0; i < e.numbers.size(); ++i) {
          put.push_back(e.numbers[i]);
          entered[e.numbers[i]] = {e.commit, i};
        }
      for (const Done::Entry& e : done_[c].takes)
        taken.insert(taken.end(), e.numbers.begin(), e.numbers.end());
    }
    std::sort(put.begin(), put.end());
    std::sort(taken.begin(), taken.end());
    CHECK(put == taken);
    // Where nothing goes back, each client finds what it takes in order.
    if (cancels_ || (line.kind != "fifo" && line.kind != "padding")) return;
    for (std::size_t c = 4 * k + 2; c < 4 * k + 4; ++c) {
      std::pair<CommitNumber, std::size_t> last{};
      for (const Done::Entry& e : done_[c].takes)
        for (std::int64_t number : e.numbers) {
          CHECK(last < entered.at(number));
          last = entered.at(number);
        }
    }
  }

  const std::uint64_t seed_;
  const bool cancels_;
  Graph g_;
  Variable counter_;
  std::vector<Line> lines_;
  Op add_;
  std::optional<PlacedSession> s_;
  CompiledStep adding_;
  std::vector<Done> done_;
  std::vector<std::int64_t> shuffled_left_;
  std::int64_t in_order_ = 0;
  static thread_local CommitNumber commit_;  // of the run that ended last
};
thread_local CommitNumber Round::commit_ = 0;

// Rounds of `turns` for each producer, until there were so many operations.
void traffic_of(std::int64_t operations, int turns, const Place& place) {
  const std::uint64_t first_seed = std::random_device{}();
  std::int64_t done = 0, cancelled = 0;
  std::uint64_t rounds = 0;
  const auto began = std::chrono::steady_clock::now();
  for (; done < operations; ++rounds) {
    const std::uint64_t seed = first_seed + rounds;
    INFO("seed " << seed << " on " << place.name);
    Round round(seed, place, rounds % 2 == 0);
    round.run(turns);
    done += round.operations();
    cancelled += round.cancelled();
  }
  CHECK(cancelled > 0);
  MESSAGE(done << " operations in " << rounds << " rounds, " << cancelled << " cancelled, "
               << seconds_since(began) << " s");
}

}  // namespace

TEST_CASE("clients at queues of every kind and a mutex lose and double nothing") {
  traffic_of(900, 60, kPlaces[0]);
  traffic_of(400, 60, kPlaces[1]);
}

// TROUPE_OPERATIONS sets the number.
TEST_CASE(
    "a million operations at queues of every kind and a mutex lose and double nothing [slow]") {
  const char* text = std::getenv("TROUPE_OPERATIONS");
  const auto operations = text ? parse_number<std::int64_t>(text) : std::int64_t{1'000'000};
  REQUIRE(operations);
  traffic_of(*operations * 9 / 10, 3000, kPlaces[0]);
  traffic_of(*operations / 10, 1000, kPlaces[1]);
}
