// The contents of a resource, or its staged changes, as values that can leave its process: for
// checkpoints, and for other copies of it.
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

// Numbers and texts, and the tensors among them. Tensors share memory with the resource: taking a
// state copies nothing.
struct ResourceState {
  std::vector<std::byte> words;
  std::vector<Tensor> tensors;
};

// As bytes, to be stored and sent. failed_precondition for a tensor outside of host memory,
// invalid_argument for lists that are nested too deep.
Expected<std::vector<std::byte>> encode_state(const ResourceState& state);
// Decodes untrusted bytes. invalid_argument if they are no state. Memory is proportional to them.
Expected<ResourceState> decode_state(std::span<const std::byte> bytes);

// The same as a tensor of bytes (u8), for fetches and feeds.
Expected<Tensor> state_tensor(const ResourceState& state);
Expected<ResourceState> state_of(const Tensor& bytes);

// The beginning of a staged record: its commit number, its attempt and its hash.
struct StagedHeader {
  CommitNumber s = 0;
  AttemptId attempt;
  std::uint64_t hash = 0;
};

// Writes a state, value by value. A reader reads them in the same order.
class StateWriter {
 public:
  StateWriter();
  ~StateWriter();
  StateWriter(const StateWriter&) = delete;
  StateWriter& operator=(const StateWriter&) = delete;

  void number(std::uint64_t value);
  void text(const std::string& value);
  void tensor(const Tensor& value);
  void tensors(const std::vector<Tensor>& values);  // with their number
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

// Reads an untrusted state. It keeps the first error; values read after an error are meaningless.
// The caller must call end() before it uses anything that it read.
class StateReader {
 public:
  // `state` must outlive it.
  explicit StateReader(const ResourceState& state);
  ~StateReader();
  StateReader(const StateReader&) = delete;
  StateReader& operator=(const StateReader&) = delete;

  std::uint64_t number();
  bool flag();
  // The number of items that follow: each takes at least a word.
  std::uint64_t count();
  std::string text();
  Tensor tensor();
  std::vector<Tensor> tensors();
  WriteKey key();
  AttemptId attempt();
  RunId run();
  StagedHeader staged();
  NodeDef node();
  // Reads a text that identifies the content; another text is an error.
  void expect(const std::string& contents);

  bool ok() const;
  // Records an error: the resource cannot have such a value.
  void refuse(const std::string& why);
  // invalid_argument unless everything was read without an error.
  Status end();

 private:
  std::unique_ptr<detail::WordReader> in_;
  const std::vector<Tensor>& tensors_;
  std::size_t next_tensor_ = 0;
};

}  // namespace troupe
