// Queues of every kind under random lives of runs, beside an obvious account of what each may get.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "actors/resources/queue_state.hpp"
#include "core/hash.hpp"

using namespace troupe;

namespace {

using Order = QueueSpec::Order;

QueueSpec kind_spec(Order order, std::int64_t capacity, std::int64_t kept = 0,
                    bool padded = false) {
  QueueSpec spec{"q", capacity, {DType::i64, DType::i64}, {}};
  spec.shapes = {PartialShape::scalar(), padded ? PartialShape{-1} : PartialShape::scalar()};
  spec.order = order;
  spec.padded = padded;
  spec.min_after_dequeue = kept;
  spec.seed = 5;
  return spec;
}

// What is known of a queue and its runs by somebody who only hears what is asked and answered.
// Each element is a number of its own, and has a priority.
class QueueAccount {
 public:
  QueueAccount(std::uint64_t seed, QueueSpec spec)
      : queue_(spec), spec_(std::move(spec)), random_(seed) {}

  // Something happens: a run begins, asks, is done again, commits or is called off.
  void step() {
    const std::uint64_t dice = random_.below(100);
    if (dice < 15 || attempts_.empty()) return begin();
    Attempt& a = attempts_[random_.below(attempts_.size())];
    if (dice < 70)
      ask(a);
    else if (dice < 82)
      again(a);
    else if (dice < 92)
      commit(a);
    else
      call_off(a);
    check_waiting();
  }
  void end_all() {
    while (!attempts_.empty()) call_off(attempts_.back());
    hear();
    check_waiting();
    CHECK(queue_.tables().empty());
    // Nothing is lost, and nothing there twice.
    std::multiset<std::int64_t> there;
    for (const QueueElement& e : queue_.elements()) there.insert(number_of(e));
    std::multiset<std::int64_t> expected;
    for (const Item& item : items_) expected.insert(item.number);
    CHECK(there == expected);
    CHECK(put_ == taken_ + std::int64_t(items_.size()));
  }

  struct Seen {
    int batches = 0, marked = 0, own = 0, closed = 0, remainders = 0, waited = 0;
  } seen;

 private:
  struct Item {
    std::int64_t number = 0, priority = 0;
    std::uint64_t id = 0;
    std::uint64_t run = 0;     // that has marked it; 0: none
    std::uint64_t marked = 0;  // by this attempt, first
    CommitNumber drawn = 0;
    bool used = false;  // by the attempt that lives
  };
  struct Own {
    std::int64_t number = 0, priority = 0;
    bool taken = false;
  };
  struct Attempt {
    AttemptInfo info;
    std::vector<Own> own;
    std::uint32_t keys = 0, waits = 0;
    bool closes = false;
    std::uint64_t run() const { return info.run.n; }
  };
  struct Asked {
    AttemptId attempt;
    std::vector<Own> puts;  // an enqueue's
    std::int64_t n = 0;     // of a dequeue; 0: no dequeue
    bool up_to = false, batched = false;
  };

  static std::int64_t number_of(const QueueElement& e) { return *e[1].data<std::int64_t>(); }

  void begin() {
    if (attempts_.size() >= 5) return;
    Attempt a;
    a.info.id = {1, next_a_++};
    a.info.run = {1, a.info.id.a};
    a.info.snapshot = decided_;
    a.info.marks_from = a.info.id.a;
    attempts_.push_back(std::move(a));
  }
  // The run is done once more: what it has marked stays its own.
  void again(Attempt& a) {
    a.info.id.a = next_a_++;
    a.info.snapshot = decided_;
    a.own.clear();
    a.keys = a.waits = 0;
    a.closes = false;
    for (Item& item : items_)
      if (item.run == a.run()) item.used = false;
    forget_asked();
    hear();
  }
  void call_off(Attempt& a) {
    for (Item& item : items_)
      if (item.run == a.run()) item.run = 0, item.used = false;
    attempts_.erase(attempts_.begin() + (&a - attempts_.data()));
    forget_asked();
    hear();
  }
  void commit(Attempt& a) {
    if (a.waits > 0 || a.keys == 0) return;
    QueueState::Outputs out;
    queue_.stage({decided_ + 1, a.info.id, a.keys, 0}, out);
    read(out);
    ++decided_;
    taken_ += std::count_if(items_.begin(), items_.end(),
                            [&](const Item& item) { return item.run == a.run() && item.used; });
    std::erase_if(items_, [&](const Item& item) { return item.run == a.run() && item.used; });
    for (Item& item : items_)
      if (item.run == a.run()) item.run = 0;
    for (const Own& own : a.own) {
      if (own.taken) continue;
      items_.push_back({own.number, own.priority, next_id_++, 0, 0, 0, false});
      ++put_;
    }
    if (a.closes) closing_ = true;
    attempts_.erase(attempts_.begin() + (&a - attempts_.data()));
    hear();
    seen.closed += queue_.closed();
  }
  void forget_asked() {
    std::erase_if(asked_, [&](const auto& each) { return !find(each.second.attempt); });
  }
  Attempt* find(const AttemptId& id) {
    auto at = std::find_if(attempts_.begin(), attempts_.end(),
                           [&](const Attempt& a) { return a.info.id == id; });
    return at == attempts_.end() ? nullptr : &*at;
  }
  // The master tells who is alive.
  void hear() {
    LiveList list{1, ++sequence_, decided_, 0, next_a_, {}};
    std::vector<Attempt> in_order = attempts_;
    std::sort(in_order.begin(), in_order.end(),
              [](const Attempt& a, const Attempt& b) { return a.info.id < b.info.id; });
    for (const Attempt& a : in_order)
      list.live.push_back({a.info.id.a, a.info.run, a.info.marks_from, a.info.snapshot});
    QueueState::Outputs out;
    queue_.live(list, out);
    read(out);
  }

  Tensor tensor_of(std::int64_t number) const {
    if (!spec_.padded) return Tensor::scalar(number);
    std::vector<std::int64_t> values(std::size_t(1 + number % 3), number);
    return Tensor::of<std::int64_t>({std::int64_t(values.size())}, values);
  }
  Own draw_element() { return {next_number_++, std::int64_t(random_.below(4)) - 2, false}; }

  void ask(Attempt& a) {
    if (a.waits > 0 && random_.below(3) > 0) return;
    const QueueState::Request request{next_request_++, a.info, {next_node_++, 0, {}}};
    Asked asked;
    asked.attempt = a.info.id;
    QueueState::Outputs out;
    const std::uint64_t dice = random_.below(100);
    ++a.waits;
    if (dice < 30) {
      asked.puts = {draw_element()};
      asked_[request.id] = asked;
      queue_.enqueue(
          request, {Tensor::scalar(asked.puts[0].priority), tensor_of(asked.puts[0].number)}, out);
    } else if (dice < 48) {
      put_many(request, asked, out);
    } else if (dice < 75) {
      asked.n = 1;
      asked_[request.id] = asked;
      queue_.dequeue(request, out);
    } else if (dice < 98) {
      asked.n = std::int64_t(1 + random_.below(std::uint64_t(spec_.capacity)));
      asked.batched = true;
      asked.up_to = random_.below(2) == 0;
      asked_[request.id] = asked;
      queue_.dequeue_many(request, asked.n, asked.up_to, out);
    } else {
      closes_.insert(request.id);
      asked_[request.id] = asked;
      queue_.close(request, random_.below(2) == 0, out);
    }
    read(out);
  }
  void put_many(const QueueState::Request& request, Asked& asked, QueueState::Outputs& out) {
    const std::size_t n = random_.below(std::uint64_t(spec_.capacity) + 1);
    std::vector<std::int64_t> priorities, numbers;
    for (std::size_t i = 0; i < n; ++i) {
      asked.puts.push_back(draw_element());
      priorities.push_back(asked.puts.back().priority);
      numbers.push_back(asked.puts.back().number);
    }
    asked_[request.id] = asked;
    const auto rows = std::int64_t(n);
    Tensor values = Tensor::of<std::int64_t>({rows}, numbers);
    if (spec_.padded) values = values.reshaped(Shape{rows, 1});
    queue_.enqueue_many(request, {Tensor::of<std::int64_t>({rows}, priorities), values}, out);
  }

  void read(const QueueState::Outputs& out) {
    for (const auto& output : out)
      if (auto* reply = std::get_if<ResourceReply>(&output)) read(*reply);
  }
  void read(const ResourceReply& reply) {
    const auto found = asked_.extract(reply.id);
    if (found.empty()) {  // of an attempt that is over
      CHECK(reply.status.code() == Code::aborted);
      return;
    }
    const Asked& asked = found.mapped();
    Attempt& a = *find(asked.attempt);
    --a.waits;
    if (!reply.status.ok()) return read_refusal(a, asked, reply);
    ++a.keys;
    if (closes_.erase(reply.id) > 0) {
      a.closes = true;
    } else if (asked.n == 0) {
      a.own.insert(a.own.end(), asked.puts.begin(), asked.puts.end());
      CHECK(occupied() <= spec_.capacity);
    } else {
      read_taken(a, asked, reply);
    }
  }
  void read_refusal(const Attempt& a, const Asked& asked, const ResourceReply& reply) {
    INFO(reply.status.text());
    switch (reply.status.code()) {
      case Code::cancelled:
        CHECK((closing_ || a.closes));
        break;
      case Code::out_of_range:
        CHECK(nothing_else_comes(a));
        CHECK(asked.n > std::int64_t(choices(a).size()));
        break;
      case Code::failed_precondition:
        CHECK(reply.status.message().find("alone fills") != std::string::npos);
        break;
      default:
        FAIL("refused otherwise");
    }
  }

  // In the order in which it takes them.
  struct Choice {
    Item* item = nullptr;
    Own* own = nullptr;
    std::array<std::int64_t, 3> rank{};
    std::int64_t number() const { return item ? item->number : own->number; }
  };
  std::vector<Choice> choices(const Attempt& attempt) {
    Attempt& a = *find(attempt.info.id);
    std::vector<Choice> all;
    for (Item& item : items_) {
      const bool mine = item.run == a.run();
      if (item.used || (item.run != 0 && !mine)) continue;
      Choice choice{&item, nullptr, {mine ? 0 : 1, std::int64_t(item.id), 0}};
      if (spec_.order == Order::priority) choice.rank = {item.priority, 0, std::int64_t(item.id)};
      if (spec_.order == Order::shuffle)
        choice.rank[1] = draw(mine ? item.drawn : a.info.snapshot, item);
      all.push_back(choice);
    }
    for (std::size_t i = 0; i < a.own.size(); ++i) {
      Choice choice{nullptr, &a.own[i], {2, std::int64_t(i), 0}};
      if (spec_.order == Order::priority) choice.rank = {a.own[i].priority, 1, std::int64_t(i)};
      if (!a.own[i].taken) all.push_back(choice);
    }
    std::sort(all.begin(), all.end(),
              [](const Choice& x, const Choice& y) { return x.rank < y.rank; });
    return all;
  }
  std::int64_t draw(CommitNumber commit, const Item& item) const {
    const std::uint64_t h = hash_combine(hash_combine(hash_text("q", 5), commit), item.id);
    return std::int64_t(h ^ (std::uint64_t{1} << 63));
  }

  void read_taken(Attempt& a, const Asked& asked, const ResourceReply& reply) {
    std::vector<Choice> expected = choices(a);
    const auto there = std::int64_t(expected.size());
    std::int64_t n = 1;
    if (asked.batched) {
      n = reply.values[1].dim(0);
      ++seen.batches;
      seen.remainders += n < asked.n;
    }
    if (n != asked.n) CHECK((asked.up_to && n < asked.n && n == there && nothing_else_comes(a)));
    if (!closing_ && !a.closes) CHECK(there - n >= spec_.min_after_dequeue);
    REQUIRE(there >= n);
    const std::int64_t width = asked.batched && spec_.padded ? reply.values[1].dim(1) : 1;
    bool own = false;
    for (std::int64_t i = 0; i < n; ++i) {
      Choice& choice = expected[std::size_t(i)];
      CHECK(reply.values[1].data<std::int64_t>()[i * width] == choice.number());
      if (choice.own) {
        choice.own->taken = own = true;
      } else {
        seen.marked += choice.item->run == a.run();
        if (choice.item->run != a.run()) choice.item->drawn = a.info.snapshot;
        choice.item->run = a.run();
        choice.item->used = true;
      }
      if (asked.batched && spec_.padded) check_padding(reply.values[1], i);
    }
    // An open queue had not given that many: others may put elements in before it closes.
    own |= a.closes && !closing_ && asked.n > 0 && there - spec_.min_after_dequeue < asked.n;
    CHECK(reply.own == own);
    seen.own += own;
  }
  // To a closed queue: no run has marked an element, or put one in, that has not ended.
  bool nothing_else_comes(const Attempt& a) const {
    return (closing_ || a.closes) &&
           std::none_of(items_.begin(), items_.end(),
                        [&](const Item& item) { return item.run != 0 && item.run != a.run(); }) &&
           std::none_of(attempts_.begin(), attempts_.end(), [&](const Attempt& other) {
             return other.run() != a.run() &&
                    std::any_of(other.own.begin(), other.own.end(),
                                [](const Own& own) { return !own.taken; });
           });
  }
  void check_padding(const Tensor& batch, std::int64_t row) {
    const std::int64_t width = batch.dim(1);
    const std::int64_t* values = batch.data<std::int64_t>() + row * width;
    bool ended = false;
    for (std::int64_t i = 0; i < width; ++i) {
      ended = ended || values[i] == 0;
      CHECK(values[i] == (ended ? 0 : values[0]));
    }
  }

  std::int64_t occupied() const {
    auto n = std::int64_t(items_.size());
    for (const Attempt& a : attempts_)
      n += std::count_if(a.own.begin(), a.own.end(), [](const Own& own) { return !own.taken; });
    return n;
  }
  // Who waits longest on a side waits rightly.
  void check_waiting() {
    const Asked *put = nullptr, *take = nullptr;
    for (const auto& [id, asked] : asked_) {  // ids are in order of arrival
      if (asked.n == 0 && !put) put = &asked;
      if (asked.n > 0 && !take) take = &asked;
    }
    seen.waited += put != nullptr || take != nullptr;
    if (put) CHECK(occupied() + std::int64_t(put->puts.size()) > spec_.capacity);
    if (!take) return;
    const Attempt& a = *find(take->attempt);
    const std::int64_t kept = closing_ || a.closes ? 0 : spec_.min_after_dequeue;
    CHECK(std::int64_t(choices(a).size()) < take->n + kept);
  }

  QueueState queue_;
  const QueueSpec spec_;
  Random random_;
  std::vector<Item> items_;  // committed
  std::vector<Attempt> attempts_;
  std::map<std::uint64_t, Asked> asked_;  // that are not answered
  std::set<std::uint64_t> closes_;
  bool closing_ = false;
  CommitNumber decided_ = 0;
  std::int64_t next_number_ = 1, put_ = 0, taken_ = 0;
  std::uint64_t next_a_ = 1, next_id_ = 1, next_request_ = 1, sequence_ = 0;
  std::uint32_t next_node_ = 1;
};

// Asks of a queue, each of a run of its own that commits at once.
struct ShortRuns {
  QueueState queue;
  QueueState::Outputs out;
  CommitNumber decided = 0;
  std::uint64_t next = 1;

  explicit ShortRuns(QueueSpec spec) : queue(std::move(spec)) {}
  AttemptInfo attempt() {
    const std::uint64_t a = next++;
    return {{1, a}, {1, a}, decided, a, 0, 0};
  }
  const ResourceReply& last() {
    for (auto o = out.rbegin(); o != out.rend(); ++o)
      if (auto* reply = std::get_if<ResourceReply>(&*o)) return *reply;
    FAIL("nothing was said");
    std::abort();
  }
  void commit(const AttemptInfo& a) {
    queue.stage({decided + 1, a.id, 1, 0}, out);
    ++decided;
    queue.live({1, decided, decided, decided, next, {}}, out);
  }
  void put(std::int64_t priority, std::int64_t number) {
    const AttemptInfo a = attempt();
    queue.enqueue({next, a, {1, 0, {}}}, {Tensor::scalar(priority), Tensor::scalar(number)}, out);
    REQUIRE(last().status.ok());
    commit(a);
  }
  std::int64_t take() {
    const AttemptInfo a = attempt();
    queue.dequeue({next, a, {1, 0, {}}}, out);
    REQUIRE(last().status.ok());
    const std::int64_t number = last().values[1].item<std::int64_t>();
    commit(a);
    return number;
  }
  Status refused(const AttemptInfo& a, std::int64_t n, bool up_to = false) {
    queue.dequeue_many({next, a, {std::uint32_t(next++), 0, {}}}, n, up_to, out);
    return last().status;
  }
};

}  // namespace

TEST_CASE("queues of every kind give runs what an obvious account says, under any schedule") {
  const std::uint64_t first_seed = std::random_device{}();
  QueueAccount::Seen seen;
  for (std::uint64_t seed = first_seed; seed < first_seed + 3000; ++seed) {
    INFO("seed " << seed);
    Random random(mix64(seed));
    const auto capacity = std::int64_t(1 + random.below(6));
    const auto kept = std::int64_t(random.below(std::uint64_t(capacity)));
    const std::uint64_t kind = random.below(4);
    QueueAccount account(seed, kind == 0   ? kind_spec(Order::fifo, capacity)
                               : kind == 1 ? kind_spec(Order::shuffle, capacity, kept)
                               : kind == 2 ? kind_spec(Order::priority, capacity)
                                           : kind_spec(Order::fifo, capacity, 0, true));
    for (int i = 0; i < 80; ++i) account.step();
    account.end_all();
    seen.batches += account.seen.batches;
    seen.marked += account.seen.marked;
    seen.own += account.seen.own;
    seen.closed += account.seen.closed;
    seen.remainders += account.seen.remainders;
    seen.waited += account.seen.waited;
  }
  CHECK(seen.batches > 2000);
  CHECK(seen.marked > 500);
  CHECK(seen.own > 500);
  CHECK(seen.closed > 100);
  CHECK(seen.remainders > 50);
  CHECK(seen.waited > 20000);
}

TEST_CASE("a queue by priority gives the lowest first, and equal ones in order") {
  ShortRuns runs(kind_spec(Order::priority, 8));
  runs.put(3, 30), runs.put(-1, 10), runs.put(3, 31), runs.put(0, 20), runs.put(-1, 11);
  for (std::int64_t expected : {10, 11, 20, 30, 31}) CHECK(runs.take() == expected);
  runs.put(std::numeric_limits<std::int64_t>::max(), 2);
  runs.put(std::numeric_limits<std::int64_t>::min(), 1);
  CHECK(runs.take() == 1);
  CHECK(runs.take() == 2);
}

TEST_CASE("a run that is done again draws the same elements; another commit draws others") {
  const auto draws = [](std::uint64_t seed) {
    QueueSpec spec = kind_spec(Order::shuffle, 64);
    spec.seed = seed;
    ShortRuns runs(spec);
    for (std::int64_t i = 0; i < 50; ++i) runs.put(0, i);
    std::vector<std::int64_t> order;
    for (int i = 0; i < 50; ++i) order.push_back(runs.take());
    return order;
  };
  const std::vector<std::int64_t> order = draws(1);
  CHECK(order == draws(1));
  CHECK(order != draws(2));
  CHECK_FALSE(std::is_sorted(order.begin(), order.end()));
  CHECK(std::set<std::int64_t>(order.begin(), order.end()).size() == 50);
  // What an earlier attempt of the run drew is drawn again, whatever has been committed since.
  QueueSpec spec = kind_spec(Order::shuffle, 64);
  ShortRuns runs(spec);
  for (std::int64_t i = 0; i < 20; ++i) runs.put(0, i);
  const AttemptInfo attempt = runs.attempt();
  runs.queue.dequeue({runs.next, attempt, {1, 0, {}}}, runs.out);
  const std::int64_t drawn = runs.last().values[1].item<std::int64_t>();
  AttemptInfo again = runs.attempt();
  again.run = attempt.run;
  again.marks_from = attempt.marks_from;
  again.snapshot = runs.decided + 3;
  runs.queue.live({1,
                   1000,
                   runs.decided,
                   0,
                   runs.next,
                   {{again.id.a, again.run, again.marks_from, again.snapshot}}},
                  runs.out);
  runs.queue.dequeue({runs.next, again, {1, 0, {}}}, runs.out);
  CHECK(runs.last().values[1].item<std::int64_t>() == drawn);
  // Of many draws each element comes first about as often as another.
  std::map<std::int64_t, int> first;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    spec.seed = seed;
    ShortRuns few(spec);
    for (std::int64_t i = 0; i < 6; ++i) few.put(0, i);
    ++first[few.take()];
  }
  for (std::int64_t i = 0; i < 6; ++i) CHECK(std::abs(first[i] - 100) < 50);
}

TEST_CASE("a shuffled queue keeps some elements to draw from until it is closed") {
  ShortRuns runs(kind_spec(Order::shuffle, 6, 2));
  for (std::int64_t i = 0; i < 3; ++i) runs.put(0, i);
  runs.take();
  const AttemptInfo waits = runs.attempt();
  runs.queue.dequeue({99, waits, {1, 0, {}}}, runs.out);
  const auto blocked = std::get<ResourceBlocked>(runs.out.back());
  CHECK(blocked.waiting == std::vector{waits.id});
  CHECK(blocked.why == "has fewer elements than are asked for beside the 2 that stay");
  const AttemptInfo closes = runs.attempt();
  runs.queue.close({100, closes, {2, 0, {}}}, false, runs.out);
  runs.queue.stage({runs.decided + 1, closes.id, 1, 0}, runs.out);
  ++runs.decided;
  runs.queue.live({1, 50, runs.decided, 0, runs.next, {{waits.id.a, waits.run, waits.id.a, 0}}},
                  runs.out);
  bool answered = false;
  for (const auto& output : runs.out)
    if (auto* reply = std::get_if<ResourceReply>(&output); reply && reply->id == 99)
      answered = reply->status.ok();
  CHECK(answered);
}

TEST_CASE("batches that no queue can hold or give are refused at once, by name") {
  ShortRuns runs(kind_spec(Order::fifo, 4));
  const AttemptInfo a = runs.attempt();
  CHECK(runs.refused(a, 5).message() == "5 elements are asked of queue 'q' of capacity 4");
  CHECK(runs.refused(a, -1).code() == Code::invalid_argument);
  CHECK(runs.refused(a, std::int64_t{1} << 40, true).code() == Code::invalid_argument);
  const auto many = [&](std::int64_t n, std::int64_t other) {
    runs.queue.enqueue_many(
        {runs.next++, a, {9, 0, {}}},
        {Tensor::zeros(DType::i64, {n}).value(), Tensor::zeros(DType::i64, {other}).value()},
        runs.out);
    return runs.last().status;
  };
  CHECK(many(5, 5).message() ==
        "a batch of 5 elements is more than queue 'q' of capacity 4 can hold");
  CHECK(many(2, 3).code() == Code::invalid_argument);
  runs.queue.enqueue_many({runs.next++, a, {9, 0, {}}},
                          {Tensor::scalar<std::int64_t>(1), Tensor::scalar<std::int64_t>(1)},
                          runs.out);
  CHECK(runs.last().status.code() == Code::invalid_argument);
  CHECK(runs.queue.tables().logs == 0);
  // Elements of no declared shape cannot be stacked.
  QueueSpec loose = kind_spec(Order::fifo, 4);
  loose.shapes.clear();
  ShortRuns others(loose);
  CHECK(others.refused(others.attempt(), 1).message().find("PaddingFIFOQueue") !=
        std::string::npos);
}

TEST_CASE("empty batches, and components without elements, go in and out") {
  QueueSpec spec{"q", 4, {DType::f32, DType::string}, {PartialShape{0, 2}, PartialShape{-1}}};
  spec.padded = true;
  ShortRuns runs(spec);
  const AttemptInfo a = runs.attempt();
  CHECK(runs.refused(a, 0).ok());
  CHECK(runs.last().values[0].shape() == Shape{0, 0, 2});
  CHECK(runs.last().values[1].shape() == Shape{0, 0});
  const auto put = [&](std::int64_t words) {
    runs.queue.enqueue(
        {runs.next++, a, {std::uint32_t(runs.next), 0, {}}},
        {Tensor::zeros(DType::f32, {0, 2}).value(), Tensor::zeros(DType::string, {words}).value()},
        runs.out);
    REQUIRE(runs.last().status.ok());
  };
  put(0), put(3);
  CHECK(runs.refused(a, 2).ok());
  CHECK(runs.last().values[0].shape() == Shape{2, 0, 2});
  CHECK(runs.last().values[1].shape() == Shape{2, 3});
  runs.queue.enqueue_many(
      {runs.next++, a, {77, 0, {}}},
      {Tensor::zeros(DType::f32, {0, 0, 2}).value(), Tensor::zeros(DType::string, {0, 5}).value()},
      runs.out);
  CHECK(runs.last().status.ok());
}

TEST_CASE("a queue that nobody can use is refused, and so is another of its name") {
  const auto refused = [](const QueueSpec& spec) {
    return spec.check().code() == Code::invalid_argument;
  };
  CHECK(refused(kind_spec(Order::shuffle, 4, 4)));
  CHECK(refused(kind_spec(Order::shuffle, 4, -1)));
  CHECK(refused(kind_spec(Order::fifo, 0)));
  QueueSpec vector = kind_spec(Order::priority, 4);
  vector.shapes[0] = PartialShape{1};
  CHECK(refused(vector));
  QueueSpec floats = kind_spec(Order::priority, 4);
  floats.dtypes[0] = DType::f64;
  CHECK(refused(floats));
  QueueSpec unknown = kind_spec(Order::fifo, 4, 0, true);
  unknown.shapes[1] = PartialShape();
  CHECK(refused(unknown));
  QueueState queue(kind_spec(Order::shuffle, 4, 1));
  CHECK(queue.compatible(kind_spec(Order::shuffle, 4, 1)).ok());
  for (const QueueSpec& other :
       {kind_spec(Order::shuffle, 4, 2), kind_spec(Order::fifo, 4), kind_spec(Order::priority, 4)})
    CHECK(queue.compatible(other).code() == Code::invalid_argument);
  QueueState by_priority(kind_spec(Order::priority, 4));
  CHECK(check_element(by_priority.spec(),
                      {Tensor::zeros(DType::i64, {2}).value(), Tensor::scalar<std::int64_t>(1)})
            .code() == Code::invalid_argument);
}
