// The kinds of sources and stages that a pipeline is made of, and how they are told.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ops/data/data_file.hpp"
#include "ops/data/example_function.hpp"
#include "ops/data/stage.hpp"
#include "ops/data/stage_text.hpp"

namespace troupe {

// What stages are opened with: the files, tensors and functions of the node, each source or stage
// taking its own, in order. `seed`: of what functions draw, of this dataset alone.
class StageOpening {
 public:
  StageOpening(OpenDataFile open, const std::vector<std::string>& files,
               std::span<const std::string> tensors, ExampleFunctions functions, std::uint64_t seed)
      : open_(open), files_(files), tensors_(tensors), functions_(functions), seed_(seed) {}

  // The next of the files, or the packed one beside it where that is all there is. Where there are
  // many, they rest until they are read: a process may not open as many as it likes.
  static constexpr std::size_t kMostOpen = 32;
  Expected<DataFilePtr> next_file();
  Expected<std::vector<DataFilePtr>> next_files(std::int64_t n);
  // The bytes of the next tensor.
  Expected<std::string_view> next_tensor();
  // The next of the functions, and what keys that which it draws in this stage alone.
  struct Function {
    ExampleFunctionPtr call;
    std::uint64_t draws = 0;
  };
  Expected<Function> next_function();
  bool all_taken() const {
    return file_ == files_.size() && tensor_ == tensors_.size() && function_ == functions_.size();
  }

 private:
  OpenDataFile open_;
  const std::vector<std::string>& files_;
  std::span<const std::string> tensors_;
  ExampleFunctions functions_;
  std::uint64_t seed_;
  std::size_t file_ = 0, tensor_ = 0, function_ = 0;
};

// A kind of source or stage. `signature` reads no file: what its arguments and inputs say; it
// checks the arguments, so that `open` is given only such that it took. A source has no inputs and
// says the exact signature when it is opened.
struct StageKind {
  static constexpr int kSomeInputs = -1;  // as many as argument 0 says

  const char* name;
  int inputs;
  Expected<Signature> (*signature)(const StageText& stage, const std::vector<Signature>& inputs);
  Expected<StagePtr> (*open)(const StageText& stage, Signature signature, Stages inputs,
                             StageOpening& opening);
  int functions = 0;  // of the node, that it calls
};
// How many functions the stages call, together.
std::size_t functions_wanted(const std::vector<std::string>& stages);

// A stage over a source.
StagePtr source_stage(std::unique_ptr<const Source> source);

// A pipeline is a list of stages, each over those before it that are not yet taken; in the end one
// is left. The signature of its elements: invalid_argument for a list that is none.
Expected<Signature> pipeline_signature(const std::vector<std::string>& stages);
Expected<StagePtr> open_stages(const std::vector<std::string>& stages, StageOpening& opening);

}  // namespace troupe
