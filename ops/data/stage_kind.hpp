// The table of kinds of sources and stages, and how a pipeline is made of a list of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ops/data/data_file.hpp"
#include "ops/data/example_function.hpp"
#include "ops/data/stage.hpp"
#include "ops/data/stage_text.hpp"

namespace troupe {

// The files, tensors and functions of a node, from which each source or stage takes its own, in
// order. `seed`: of the random numbers of functions, different for each dataset.
class StageOpening {
 public:
  StageOpening(OpenDataFile open, const std::vector<std::string>& files,
               std::span<const std::string> tensors, ExampleFunctions functions, std::uint64_t seed)
      : open_(open), files_(files), tensors_(tensors), functions_(functions), seed_(seed) {}

  // The next file, or the one with ".gz" appended if only that exists. If there are more than
  // kMostOpen, each is closed until it is read, because a process may open only so many.
  static constexpr std::size_t kMostOpen = 32;
  Expected<DataFilePtr> next_file();
  Expected<std::vector<DataFilePtr>> next_files(std::int64_t n);
  // The encoded elements of the next tensor.
  Expected<std::string_view> next_tensor();
  // The next function, with the key of its random numbers in this stage.
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

// A kind of source or stage. `signature` derives the signature from the arguments and inputs, and
// reads no files. It checks the arguments; `open` is called only with arguments that passed. A
// source has no inputs, and may have a more exact signature once it is open.
struct StageKind {
  static constexpr int kSomeInputs = -1;  // the number is argument 0

  const char* name;
  int inputs;
  Expected<Signature> (*signature)(const StageText& stage, const std::vector<Signature>& inputs);
  Expected<StagePtr> (*open)(const StageText& stage, Signature signature, Stages inputs,
                             StageOpening& opening);
  int functions = 0;  // number of functions that it takes from the node
};
// The number of functions that the stages call, together.
std::size_t functions_wanted(const std::vector<std::string>& stages);

// A stage over a source.
StagePtr source_stage(std::unique_ptr<const Source> source);

// A pipeline is a list of stages in postfix order: each has the last stages not yet taken as
// inputs, and in the end one is left. invalid_argument for other lists.
Expected<Signature> pipeline_signature(const std::vector<std::string>& stages);
Expected<StagePtr> open_stages(const std::vector<std::string>& stages, StageOpening& opening);

}  // namespace troupe
