// A queue that goes on elsewhere: what it holds, and what is staged, as bytes and back.
#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "actors/resources/queue_state.hpp"
#include "core/hash.hpp"
#include "tests/protocol/moving_attempts.hpp"

using namespace troupe;

namespace {

std::string moved_text(const Tensor& t) {
  if (t.rank() > 0) return t.text(100);
  return t.dtype() == DType::string ? t.item<std::string>()
                                    : std::to_string(t.item<std::int64_t>());
}

// All that a queue says, as text.
std::string said_by(const QueueState::Outputs& out) {
  std::string all;
  for (const auto& output : out) {
    if (auto* reply = std::get_if<ResourceReply>(&output)) {
      all += "reply " + std::to_string(reply->id) + " " + reply->status.text() +
             (reply->own ? " own" : "");
      for (const Tensor& t : reply->values) all += " " + moved_text(t);
    } else if (auto* staged = std::get_if<ResourceStaged>(&output)) {
      all += "staged " + std::to_string(staged->s) + " " + staged->attempt.text() + " " +
             std::to_string(staged->hash) + " " + staged->status.text();
    } else if (auto* blocked = std::get_if<ResourceBlocked>(&output)) {
      all += "blocked";
      for (const AttemptId& a : blocked->waiting) all += " " + a.text();
      for (const RunId& r : blocked->marked) all += " run " + std::to_string(r.n);
    }
    all += "\n";
  }
  return all;
}

std::vector<Tensor> look_at(const QueueView& view) {
  return {Tensor::scalar<std::int64_t>(view.size * 2 + (view.closed ? 1 : 0))};
}

std::vector<std::byte> queue_bytes(const Expected<ResourceState>& state) {
  return value_or_throw(encode_state(value_or_throw(state)));
}

constexpr QueueState::Request queue_request(std::uint64_t id, const AttemptInfo& attempt,
                                            std::uint32_t node) {
  return {id, attempt, {node, 0, {}}};
}

QueueElement moved_batch(std::int64_t n, std::int64_t x) {
  std::vector<std::int64_t> numbers(std::size_t(n), x);
  std::vector<std::string> texts(std::size_t(n), std::to_string(x));
  return {Tensor::of<std::int64_t>({n}, numbers),
          Tensor::of<std::string>({n}, std::span<const std::string>(texts))};
}

// A life of queues that are told the same. Of what they say only the first counts.
class QueueLife : public testing::MovingAttempts {
 public:
  using MovingAttempts::MovingAttempts;

  // Attempts that enqueue, dequeue, close, look; are staged, decided, taken back or forgotten.
  void step(const std::vector<QueueState*>& queues) {
    const std::uint64_t dice = random_.below(100);
    if (dice < 12 || alive_.empty()) {
      begin();
    } else if (dice < 70) {
      const AttemptInfo& a = any();
      if (!is_staged(a)) ask(a, queues);
    } else if (dice < 80) {
      stage(queues);
    } else if (dice < 90) {
      if (random_.below(4) > 0) decide();
      tell(queues);
    } else {
      end_one();
      tell(queues);
    }
  }
  void end_all(const std::vector<QueueState*>& queues, bool decided) {
    end_alive(decided);
    tell(queues);
  }
  std::string transcript(std::size_t queue) const {
    return queue < said_.size() ? said_[queue] : "";
  }
  void forget_transcripts() { said_.clear(); }

 private:
  template <class Do>
  void each(const std::vector<QueueState*>& queues, Do what) {
    said_.resize(queues.size());
    for (std::size_t i = 0; i < queues.size(); ++i) {
      QueueState::Outputs out;
      what(*queues[i], out);
      said_[i] += said_by(out);
      if (i == 0) count_keys(out);
    }
  }
  // Each request that was answered well has left one.
  void count_keys(const QueueState::Outputs& out) {
    for (const auto& output : out) {
      auto* reply = std::get_if<ResourceReply>(&output);
      if (!reply) continue;
      if (auto found = asked_.extract(reply->id); !found.empty() && reply->status.ok())
        ++keys_[found.mapped()];
    }
  }
  void ask(const AttemptInfo& a, const std::vector<QueueState*>& queues) {
    const QueueState::Request request = queue_request(next_id_++, a, next_node_++);
    const std::uint64_t dice = random_.below(100);
    const auto x = std::int64_t(random_.below(1000));
    const bool cancel = random_.below(2) == 0;
    const auto n = std::int64_t(random_.below(3));
    if (dice < 91) asked_[request.id] = a.id;
    each(queues, [&](QueueState& queue, auto& out) {
      if (dice < 35)
        queue.enqueue(request, {Tensor::scalar<std::int64_t>(x), Tensor::scalar(std::to_string(x))},
                      out);
      else if (dice < 50)
        queue.enqueue_many(request, moved_batch(n, x), out);
      else if (dice < 75)
        queue.dequeue(request, out);
      else if (dice < 90)
        queue.dequeue_many(request, n, cancel, out);
      else if (dice < 91)
        queue.close(request, cancel, out);
      else
        queue.look(request, look_at, out);
    });
  }
  void stage(const std::vector<QueueState*>& queues) {
    if (anything_staged()) return;
    const AttemptInfo& a = any();
    const StageRequest request = to_stage(a, keys_[a.id]);
    each(queues, [&](QueueState& queue, auto& out) { queue.stage(request, out); });
  }
  void tell(const std::vector<QueueState*>& queues) {
    const LiveList list = live_list();
    each(queues, [&](QueueState& queue, auto& out) { queue.live(list, out); });
  }

  std::uint64_t next_id_ = 1;
  std::uint32_t next_node_ = 1;
  std::map<AttemptId, std::uint32_t> keys_;
  std::map<std::uint64_t, AttemptId> asked_;  // by request
  std::vector<std::string> said_;
};

// 0: of elements of any shape; 1 to 3: of batches, too.
QueueSpec moving_spec(std::int64_t capacity, std::uint64_t kind = 0) {
  QueueSpec spec{"q", capacity, {DType::i64, DType::string}, {}};
  if (kind > 0) spec.shapes = {PartialShape::scalar(), PartialShape::scalar()};
  spec.order = QueueSpec::Order(kind % 3);
  if (kind % 3 == 1) spec.min_after_dequeue = capacity / 2;
  return spec;
}

// At a random point of a random life: the queue as bytes, with what is staged, and one made of
// them.
struct MovedQueue {
  std::unique_ptr<QueueState> first, second;
  QueueLife life;
  const std::uint64_t kind;
  bool had_staged = false;

  MovedQueue(std::uint64_t seed, std::int64_t capacity, int steps) : life(seed), kind(seed % 4) {
    first = std::make_unique<QueueState>(moving_spec(capacity, kind));
    for (int i = 0; i < steps; ++i) life.step({first.get()});
  }
  void move(std::int64_t capacity) {
    second = std::make_unique<QueueState>(moving_spec(capacity, kind));
    throw_if_error(second->load(value_or_throw(decode_state(queue_bytes(first->save())))));
    had_staged = life.anything_staged();
    CHECK(first->record().ok() == had_staged);
    if (!had_staged) return;
    QueueState::Outputs out;
    const auto record = value_or_throw(decode_state(queue_bytes(first->record())));
    throw_if_error(second->stage_record(record, out));
    throw_if_error(second->stage_record(record, out));  // sent again
    CHECK(queue_bytes(second->record()) == queue_bytes(first->record()));
  }
};

}  // namespace

TEST_CASE("a queue that goes on elsewhere, at any point, does what it would have done here") {
  const std::uint64_t first_seed = std::random_device{}();
  int staged = 0, closed = 0, with_elements = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + 800; ++seed) {
    INFO("seed " << seed);
    Random random(mix64(seed));
    const auto capacity = std::int64_t(1 + random.below(5));
    MovedQueue m(seed, capacity, int(random.below(120)));
    m.move(capacity);
    staged += m.had_staged;
    closed += m.first->closed();
    with_elements += !m.first->elements().empty();
    m.life.end_all({m.first.get(), m.second.get()}, random.below(2) == 0);
    CHECK(queue_bytes(m.first->save()) == queue_bytes(m.second->save()));
    m.life.forget_transcripts();
    for (int i = 0; i < 120; ++i) m.life.step({m.first.get(), m.second.get()});
    REQUIRE(m.life.transcript(0) == m.life.transcript(1));
    m.life.end_all({m.first.get(), m.second.get()}, true);
    CHECK(queue_bytes(m.first->save()) == queue_bytes(m.second->save()));
    CHECK(m.second->tables().empty());
  }
  CHECK(staged > 10);
  CHECK(closed > 10);
  CHECK(with_elements > 200);
}

TEST_CASE("hostile bytes of a queue are refused, or make one that could be") {
  const std::uint64_t first_seed = std::random_device{}();
  int refused = 0, taken = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + 300; ++seed) {
    INFO("seed " << seed);
    Random random(mix64(seed));
    MovedQueue m(seed, 4, 60);
    m.move(4);
    for (int i = 0; i < 20; ++i) {
      const bool record = m.had_staged && i % 2 == 0;
      ResourceState state = value_or_throw(record ? m.first->record() : m.first->save());
      if (state.words.empty()) continue;
      if (!state.tensors.empty() && random.below(5) == 0)
        state.tensors[random.below(state.tensors.size())] =
            random.below(2) == 0 ? Tensor() : Tensor::scalar(1.f);
      else if (random.below(6) == 0)
        state.words.resize(random.below(state.words.size() / 8 + 1) * 8);
      else
        state.words[random.below(state.words.size())] ^= std::byte(1 + random.below(255));
      QueueState other(moving_spec(4, m.kind));
      QueueState::Outputs out;
      if (record) throw_if_error(other.load(value_or_throw(m.first->save())));
      const auto before = queue_bytes(other.save());
      const Status status = record ? other.stage_record(state, out) : other.load(state);
      if (!status.ok()) {
        ++refused;
        const bool said_so = status.code() == Code::invalid_argument ||
                             (record && status.code() == Code::failed_precondition);
        CHECK_MESSAGE(said_so, status.text());
        CHECK(queue_bytes(other.save()) == before);
        CHECK(other.tables().empty());
        continue;
      }
      ++taken;
      // Whatever is accepted is a queue like any other.
      other.live({9, 1, ~std::uint64_t{0} >> 1, 0, ~std::uint64_t{0}, {}}, out);
      CHECK(other.tables().empty());
      CHECK(std::int64_t(other.elements().size()) <= 4);
      QueueState again(moving_spec(4, m.kind));
      CHECK(again.load(value_or_throw(other.save())).ok());
    }
  }
  CHECK(refused > 1000);
  CHECK(taken > 100);
}

TEST_CASE("a state is put into a new queue only, and only what it can hold") {
  QueueState queue(moving_spec(2));
  QueueState::Outputs out;
  const AttemptInfo a{{1, 1}, {1, 1}, 0, 1, 0, 0};
  for (std::int64_t x : {1, 2})
    queue.enqueue(queue_request(std::uint64_t(x), a, std::uint32_t(x)),
                  {Tensor::scalar(x), Tensor::scalar(std::string("t"))}, out);
  queue.stage({1, a.id, 2, 0}, out);
  queue.live({1, 1, 1, 0, 2, {}}, out);
  const ResourceState two = value_or_throw(queue.save());
  CHECK(queue.load(two).code() == Code::failed_precondition);
  const Status small = QueueState(moving_spec(1)).load(two);
  CHECK(small.code() == Code::invalid_argument);
  CHECK(small.message() == "queue 'q' of capacity 1 cannot hold 2 elements");
  CHECK(QueueState({"q", 2, {DType::i64, DType::i64}, {}}).load(two).code() ==
        Code::invalid_argument);
  CHECK(queue.record().status().code() == Code::failed_precondition);
  QueueState more(moving_spec(3));
  CHECK(more.load(two).ok());
  CHECK(more.elements().size() == 2);
  CHECK(more.committed() == 1);
}

TEST_CASE("a run puts a state into a queue when it commits, as a whole or not at all") {
  QueueState from(moving_spec(3)), to(moving_spec(3));
  QueueState::Outputs out;
  const AttemptInfo a{{1, 1}, {1, 1}, 0, 1, 0, 0};
  from.enqueue(queue_request(1, a, 1),
               {Tensor::scalar<std::int64_t>(5), Tensor::scalar(std::string("x"))}, out);
  from.stage({1, a.id, 1, 0}, out);
  from.live({1, 1, 1, 0, 2, {}}, out);
  const Tensor bytes = value_or_throw(state_tensor(value_or_throw(from.save())));
  auto reply = [&] { return std::get<ResourceReply>(out.back()).status; };

  out.clear();
  to.load_for(queue_request(2, a, 7), bytes, out);
  CHECK(reply().ok());
  CHECK(to.elements().empty());
  to.live({1, 1, 0, 0, 2, {}}, out);  // the attempt is over
  const AttemptInfo b{{1, 2}, {1, 1}, 0, 1, 0, 0};
  out.clear();
  to.load_for(queue_request(3, b, 7), bytes, out);
  CHECK(reply().ok());
  to.stage({8, b.id, 1, 0}, out);
  CHECK(std::get<ResourceStaged>(out.back()).status.ok());
  CHECK(to.elements().empty());
  to.live({1, 2, 8, 0, 3, {}}, out);
  REQUIRE(to.elements().size() == 1);
  CHECK(to.elements()[0][0].item<std::int64_t>() == 5);
  CHECK(to.committed() == 8);
  out.clear();
  const AttemptInfo c{{1, 3}, {1, 2}, 8, 3, 0, 0};
  to.load_for(queue_request(4, c, 7), bytes, out);
  CHECK(reply().code() == Code::failed_precondition);
  out.clear();
  to.load_for(queue_request(5, c, 7), Tensor::scalar(1.f), out);
  CHECK(reply().code() == Code::invalid_argument);
  // What a run finds: the committed state, as bytes.
  out.clear();
  to.save_for(queue_request(6, c, 8), out);
  REQUIRE(reply().ok());
  QueueState third(moving_spec(3));
  CHECK(
      third.load(value_or_throw(state_of(std::get<ResourceReply>(out.back()).values.at(0)))).ok());
  CHECK(queue_bytes(third.save()) == queue_bytes(to.save()));
}
