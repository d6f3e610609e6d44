#include "devices/cuda/cudnn.hpp"

#include <algorithm>
#include <array>

namespace troupe::cuda {

Status Cudnn::check(DnnResult result, const char* call) const {
  // CUDNN_STATUS_NOT_SUPPORTED and the refinements behind it; ..._ALLOCATION_FAILED.
  constexpr DnnResult kNotSupported = 3000, kInternal = 4000, kNoHostMemory = 4003,
                      kNoDeviceMemory = 4004;
  if (result == 0) return ok_status();
  const char* name = cudnnGetErrorString(result);
  std::string text =
      std::string(call) + ": " + (name ? name : "cuDNN error " + std::to_string(result));
  std::array<char, 256> why{};
  cudnnGetLastErrorString(why.data(), why.size() - 1);
  if (why[0] != 0) text += " (" + std::string(why.data()) + ")";
  if (result >= kNotSupported && result < kInternal) return unimplemented(text);
  const bool memory = result == kNoHostMemory || result == kNoDeviceMemory;
  return memory ? resource_exhausted(text) : internal_error(text);
}

Expected<Cudnn> open_cudnn(const Search& search) {
  TROUPE_TRY(const Library library, Library::open({"libcudnn.so.9"}, search));
  Cudnn dnn;
  dnn.path = library.path();
  dnn.fake = library.find("troupe_fake_cudnn") != nullptr;
  if (const char* lacks = fill(static_cast<CudnnTable&>(dnn), library))
    return failed_precondition(library.path() + " lacks " + lacks);
  dnn.version = int(dnn.cudnnGetVersion());
  dnn.cuda_version = int(dnn.cudnnGetCudartVersion());
  return dnn;
}

DnnDescriptor::~DnnDescriptor() {
  if (raw_) library_->cudnnBackendDestroyDescriptor(raw_);
}

Expected<DnnDescriptor> DnnDescriptor::make(const Cudnn& library, DnnKind kind) {
  void* raw = nullptr;
  TROUPE_TRY(library.check(library.cudnnBackendCreateDescriptor(kind, &raw),
                           "cudnnBackendCreateDescriptor"));
  return DnnDescriptor(library, raw);
}

Status DnnDescriptor::set(DnnAttribute attribute, DnnValue type, std::int64_t count,
                          const void* values) {
  return library_->check(library_->cudnnBackendSetAttribute(raw_, attribute, type, count, values),
                         "cudnnBackendSetAttribute");
}

Status DnnDescriptor::set_descriptors(DnnAttribute attribute,
                                      std::span<const DnnDescriptor> values) {
  std::vector<void*> all;
  for (const DnnDescriptor& value : values) all.push_back(value.raw_);
  return set(attribute, kDnnOfDescriptor, std::int64_t(all.size()), all.data());
}

Status DnnDescriptor::finalize() {
  return library_->check(library_->cudnnBackendFinalize(raw_), "cudnnBackendFinalize");
}

Status DnnDescriptor::get(DnnAttribute attribute, DnnValue type, std::int64_t most,
                          std::int64_t& count, void* values) const {
  return library_->check(
      library_->cudnnBackendGetAttribute(raw_, attribute, type, most, &count, values),
      "cudnnBackendGetAttribute");
}

Expected<std::int64_t> DnnDescriptor::get_int64(DnnAttribute attribute) const {
  std::int64_t count = 0, value = 0;
  TROUPE_TRY(get(attribute, kDnnOfInt64, 1, count, &value));
  return value;
}

Expected<std::vector<DnnNumericalNote>> DnnDescriptor::get_notes() const {
  constexpr std::int64_t kMost = 64;  // NVIDIA knows ten
  std::vector<DnnNumericalNote> notes(kMost);
  std::int64_t count = 0;
  TROUPE_TRY(get(kDnnEngineNotes, kDnnOfNumericalNote, kMost, count, notes.data()));
  if (count < 0 || count > kMost)
    return internal_error("an engine has " + std::to_string(count) + " numerical notes");
  notes.resize(std::size_t(count));
  return notes;
}

Expected<std::vector<DnnDescriptor>> DnnDescriptor::get_descriptors(DnnAttribute attribute,
                                                                    DnnKind kind) const {
  std::int64_t count = 0;
  TROUPE_TRY(get(attribute, kDnnOfDescriptor, 0, count, nullptr));
  std::vector<DnnDescriptor> values;
  std::vector<void*> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    TROUPE_TRY(DnnDescriptor value, make(*library_, kind));
    raw.push_back(value.raw_);
    values.push_back(std::move(value));
  }
  std::int64_t filled = 0;
  if (count > 0) TROUPE_TRY(get(attribute, kDnnOfDescriptor, count, filled, raw.data()));
  values.resize(std::size_t(std::clamp<std::int64_t>(filled, 0, count)));
  return values;
}

}  // namespace troupe::cuda
