#include "serialization/resource_state.hpp"

#include <cstring>
#include <new>
#include <utility>

#include "serialization/detail/words.hpp"
#include "serialization/lists.hpp"

namespace troupe {
namespace {

constexpr std::uint64_t kStateFormat = 1;

// Lists have their own encoding.
enum class Contents : std::uint8_t { plain = 0, list = 1 };

Status check_sent(const Tensor& t) {
  if (!t.defined() || (t.space() == MemorySpace::host && t.dtype() != DType::resource))
    return ok_status();
  return failed_precondition("a tensor of a resource's state is not in host memory");
}

Status write_state_tensor(detail::WordWriter& out, const Tensor& t) {
  TROUPE_TRY(check_sent(t));
  if (t.zeros_alone()) {
    TROUPE_TRY(Tensor zeros, Tensor::make(t.dtype(), t.shape()));
    std::memset(zeros.mutable_raw(), 0, zeros.bytes());
    return write_state_tensor(out, zeros);
  }
  if (!t.defined() || t.dtype() != DType::list) {
    out.put(Contents::plain);
    out.put(t);
    return ok_status();
  }
  TROUPE_TRY(const Buffer list, encode_list(t));
  out.put(Contents::list);
  out.begin_bytes(list.size());
  out.copy(list.data(), list.size());
  out.pad();
  return ok_status();
}

Expected<Tensor> read_state_tensor(detail::WordReader& in) {
  Contents contents{};
  in.get(contents);
  if (contents == Contents::list) return decode_list(in.bytes());
  if (contents != Contents::plain) in.refuse("a tensor of unknown contents");
  Tensor t;
  in.get(t);
  if (t.defined() && t.dtype() == DType::list) in.refuse("a list without its elements");
  return t;
}

}  // namespace

Expected<std::vector<std::byte>> encode_state(const ResourceState& state) {
  detail::WordWriter out;
  out.word(kStateFormat);
  out.put(state.words);
  out.word(state.tensors.size());
  for (const Tensor& t : state.tensors) TROUPE_TRY(write_state_tensor(out, t));
  return out.take();
}

Expected<ResourceState> decode_state(std::span<const std::byte> bytes) try {
  detail::WordReader in(bytes);
  if (in.word() != kStateFormat) in.refuse("a resource's state of unknown format");
  ResourceState state;
  in.get(state.words);
  for (std::uint64_t n = in.count(); n > 0 && in.ok(); --n) {
    TROUPE_TRY(Tensor t, read_state_tensor(in));
    state.tensors.push_back(std::move(t));
  }
  TROUPE_TRY(in.end());
  return state;
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory for a resource's state of " + std::to_string(bytes.size()) +
                            " bytes");
}

Expected<Tensor> state_tensor(const ResourceState& state) {
  TROUPE_TRY(const std::vector<std::byte> bytes, encode_state(state));
  TROUPE_TRY(Tensor t, Tensor::make(DType::u8, Shape{std::int64_t(bytes.size())}));
  std::memcpy(t.mutable_raw(), bytes.data(), bytes.size());
  return t;
}

Expected<ResourceState> state_of(const Tensor& bytes) {
  if (!bytes.defined() || bytes.dtype() != DType::u8 || bytes.space() != MemorySpace::host)
    return invalid_argument("a resource's state is a u8 tensor");
  return decode_state({static_cast<const std::byte*>(bytes.raw()), bytes.bytes()});
}

StateWriter::StateWriter() : out_(std::make_unique<detail::WordWriter>()) {}
StateWriter::~StateWriter() = default;

void StateWriter::number(std::uint64_t value) { out_->word(value); }
void StateWriter::text(const std::string& value) { out_->put(value); }
void StateWriter::tensor(const Tensor& value) {
  out_->word(tensors_.size());
  tensors_.push_back(value);
}
void StateWriter::tensors(const std::vector<Tensor>& values) {
  out_->word(values.size());
  for (const Tensor& t : values) tensor(t);
}
void StateWriter::key(const WriteKey& key) {
  out_->put_all(std::tie(key.node, key.replica, key.iterations));
}
void StateWriter::attempt(const AttemptId& id) { out_->put(id); }
void StateWriter::run(const RunId& id) { out_->put(id); }
void StateWriter::staged(const StagedHeader& header) {
  number(header.s);
  attempt(header.attempt);
  number(header.hash);
}
void StateWriter::node(const NodeDef& node) {
  auto graph = std::make_shared<GraphDef>();
  graph->nodes.push_back(node);
  out_->put(std::shared_ptr<const GraphDef>(std::move(graph)));
}
ResourceState StateWriter::take() { return {out_->take(), std::move(tensors_)}; }

StateReader::StateReader(const ResourceState& state)
    : in_(std::make_unique<detail::WordReader>(state.words)), tensors_(state.tensors) {}
StateReader::~StateReader() = default;

std::uint64_t StateReader::number() { return in_->word(); }
bool StateReader::flag() {
  const std::uint64_t value = in_->word();
  if (value > 1) in_->refuse("a flag that is neither 0 nor 1");
  return value == 1;
}
std::uint64_t StateReader::count() { return in_->count(); }
std::string StateReader::text() {
  std::string out;
  in_->get(out);
  return out;
}
Tensor StateReader::tensor() {
  const std::uint64_t number = in_->word();
  if (number != next_tensor_ || number >= tensors_.size()) {
    in_->refuse("a tensor that is not there");
    return {};
  }
  return tensors_[next_tensor_++];
}
std::vector<Tensor> StateReader::tensors() {
  std::vector<Tensor> out;
  for (std::uint64_t n = in_->count(); n > 0 && ok(); --n) out.push_back(tensor());
  return out;
}
WriteKey StateReader::key() {
  WriteKey key;
  in_->get_all(std::tie(key.node, key.replica, key.iterations));
  return key;
}
AttemptId StateReader::attempt() {
  AttemptId id;
  in_->get(id);
  return id;
}
RunId StateReader::run() {
  RunId id;
  in_->get(id);
  return id;
}
StagedHeader StateReader::staged() {
  const CommitNumber s = number();
  const AttemptId id = attempt();
  return {s, id, number()};
}
NodeDef StateReader::node() {
  std::shared_ptr<const GraphDef> graph;
  in_->get(graph);
  if (!graph || graph->nodes.size() != 1) {
    in_->refuse("a node that is none");
    return {};
  }
  return graph->nodes.front();
}

void StateReader::expect(const std::string& contents) {
  if (text() != contents) refuse("this is no '" + contents + "'");
}

bool StateReader::ok() const { return in_->ok(); }
void StateReader::refuse(const std::string& why) { in_->refuse(why); }
Status StateReader::end() {
  if (in_->ok() && next_tensor_ != tensors_.size()) in_->refuse("tensors that nobody names");
  return in_->end();
}

}  // namespace troupe
