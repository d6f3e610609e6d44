// What a resource holds, or has staged, as values that leave its process: for checkpoints, and for
// other copies of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/status.hpp"
#include "core/tensor.hpp"
#include "core/transaction.hpp"

namespace troupe {

struct NodeDef;
namespace detail {
class WordReader;
class WordWriter;
}  // namespace detail

// Numbers and texts, and the tensors among them, whose contents are those of the resource: nothing
// is copied when it is taken.
struct ResourceState {
  std::vector<std::byte> words;
  std::vector<Tensor> tensors;
};

// As bytes: what is kept and sent. failed_precondition for a tensor outside of host memory,
// invalid_argument for lists in lists that are too deep.
Expected<std::vector<std::byte>> encode_state(const ResourceState& state);
// Of bytes that anybody may have made. invalid_argument when they are none; memory is taken in
// proportion to them.
Expected<ResourceState> decode_state(std::span<const std::byte> bytes);

// The same as a tensor of bytes (u8), which a run fetches or is fed.
Expected<Tensor> state_tensor(const ResourceState& state);
Expected<ResourceState> state_of(const Tensor& bytes);

// How a staged record begins: which commit it is to be, whose it is, and its hash.
struct StagedHeader {
  CommitNumber s = 0;
  AttemptId attempt;
  std::uint64_t hash = 0;
};

// Makes one, value after value. A reader reads them in the same order.
class StateWriter {
 public:
  StateWriter();
  ~StateWriter();
  StateWriter(const StateWriter&) = delete;
  StateWriter& operator=(const StateWriter&) = delete;

  void number(std::uint64_t value);
  void text(const std::string& value);
  void tensor(const Tensor& value);
  void tensors(const std::vector<Tensor>& values);  // and how many
  void key(const WriteKey& key);
  void attempt(const AttemptId& id);
  void run(const RunId& id);
  void staged(const StagedHeader& header);
  void node(const NodeDef& node);  // with a name and an op; no tensors of its attributes are shared

  ResourceState take();

 private:
  std::unique_ptr<detail::WordWriter> out_;
  std::vector<Tensor> tensors_;
};

// Reads one that anybody may have made. The first thing that is wrong with it is kept, and what is
// read after it means nothing: whoever reads asks end() before it believes anything.
class StateReader {
 public:
  // `state` outlives it.
  explicit StateReader(const ResourceState& state);
  ~StateReader();
  StateReader(const StateReader&) = delete;
  StateReader& operator=(const StateReader&) = delete;

  std::uint64_t number();
  bool flag();
  // How many items follow: each takes a word at least.
  std::uint64_t count();
  std::string text();
  Tensor tensor();
  std::vector<Tensor> tensors();
  WriteKey key();
  AttemptId attempt();
  RunId run();
  StagedHeader staged();
  NodeDef node();
  // A text that says what follows, or it is refused as none.
  void expect(const std::string& contents);

  bool ok() const;
  // What was read is not what the resource can hold.
  void refuse(const std::string& why);
  // invalid_argument unless all of it was read, and nothing was wrong.
  Status end();

 private:
  std::unique_ptr<detail::WordReader> in_;
  const std::vector<Tensor>& tensors_;
  std::size_t next_tensor_ = 0;
};

}  // namespace troupe
