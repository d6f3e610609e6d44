// Converts values to and from 64-bit words, little-endian, the encoding of messages.
//
//   numbers, bools, enumerations   one word
//   texts, bytes                   length, then content, padded with zeros to whole words
//   lists, maps                    number of items, then each item
//   structs                        field after field
//   tensors                        dtype, dimensions, content; a graph is a Cap'n Proto message
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/name.hpp"
#include "core/status.hpp"
#include "core/tensor.hpp"
#include "graph/graph.hpp"
#include "serialization/message.hpp"

namespace troupe::detail {

static_assert(std::endian::native == std::endian::little, "words are copied as they are");

class WordWriter {
 public:
  WordWriter() { words_.reserve(512); }
  std::vector<std::byte> take() { return std::move(words_); }

  void word(std::uint64_t value) { copy(&value, sizeof value); }
  // Begins a blob of that size; the caller then calls copy() for its content, and pad().
  void begin_bytes(std::uint64_t size) {
    // A large blob fits exactly; of many small ones, few make the bytes move.
    const std::size_t needed = words_.size() + size + 2 * sizeof(std::uint64_t);
    if (needed > words_.capacity()) words_.reserve(std::max(needed, words_.capacity() * 3 / 2));
    word(size);
  }
  void copy(const void* data, std::size_t size) {
    auto* from = static_cast<const std::byte*>(data);
    words_.insert(words_.end(), from, from + size);
  }
  void pad() { words_.resize((words_.size() + 7) / 8 * 8); }

  template <class T>
  requires std::is_integral_v<T>
  void put(T value) { word(std::uint64_t(value)); }
  template <class T>
  requires std::is_enum_v<T>
  void put(T value) { word(std::uint64_t(value)); }
  void put(const std::string& text) { bytes(text.data(), text.size()); }
  void put(const std::vector<std::byte>& data) { bytes(data.data(), data.size()); }
  void put(const DeviceName& name) { put(name.text()); }
  void put(const PortName& name) { put(name.text()); }
  void put(const Status& status);
  // REQUIRES: undefined, or in host memory and not a resource.
  void put(const Tensor& tensor);
  // REQUIRES: not null.
  void put(const std::shared_ptr<const GraphDef>& graph);
  template <class T>
  void put(const std::vector<T>& list) {
    word(list.size());
    for (const T& item : list) put(item);
  }
  template <class K, class T>
  void put(const std::map<K, T>& map) {
    word(map.size());
    for (const auto& [key, value] : map) put(key), put(value);
  }
  template <class T>
  requires requires(const T& t) { Fields<T>::of(t); }
  void put(const T& value) { put_all(Fields<T>::of(value)); }
  template <class Tuple>
  void put_all(const Tuple& fields) {
    std::apply([this](const auto&... field) { (this->put(field), ...); }, fields);
  }

 private:
  void bytes(const void* data, std::size_t size) {
    begin_bytes(size);
    copy(data, size);
    pad();
  }

  std::vector<std::byte> words_;
};

// Reads untrusted words. It keeps the first error, and values read after an error are meaningless,
// so the caller checks once, with end(). Memory grows with the words that were read, never with an
// announced count: every item of a list has at least one word.
class WordReader {
 public:
  explicit WordReader(std::span<const std::byte> words) : left_(words) {
    if (words.size() % sizeof(std::uint64_t) != 0)
      fail(std::to_string(words.size()) + " bytes are not a whole number of words");
  }
  // The first error, or invalid_argument if not everything was read.
  Status end() {
    if (error_.ok() && !left_.empty()) fail("words follow its end");
    return error_;
  }

  bool ok() const { return error_.ok(); }
  // Records an error that the caller found in what it read.
  void refuse(const std::string& why) { fail(why); }

  std::uint64_t word();
  // The number of items that follow. Every item has at least one word.
  std::uint64_t count();
  // A blob: its length, then that many bytes, padded to whole words.
  std::span<const std::byte> bytes();

  template <class T>
  requires std::is_integral_v<T>
  void get(T& out) {
    const std::uint64_t value = word();
    out = T(value);
    if (std::uint64_t(out) != value) fail("a number out of range");
  }
  template <class T>
  requires std::is_enum_v<T>
  void get(T& out) {
    std::underlying_type_t<T> number{};
    get(number);
    out = T(number);
  }
  void get(std::string& out);
  void get(std::vector<std::byte>& out);
  void get(DeviceName& out) { parse(out); }
  void get(PortName& out) { parse(out); }
  void get(Status& out);
  void get(Tensor& out);
  void get(std::shared_ptr<const GraphDef>& out);
  template <class T>
  void get(std::vector<T>& out) {
    for (std::uint64_t n = count(); n > 0 && error_.ok(); --n) get(out.emplace_back());
  }
  template <class K, class T>
  void get(std::map<K, T>& out) {
    for (std::uint64_t n = count(); n > 0 && error_.ok(); --n) {
      K key;
      get(key);
      auto [at, fresh] = out.try_emplace(std::move(key));
      if (!fresh) fail("a key that is there twice");
      get(at->second);
    }
  }
  template <class T>
  requires requires(T& t) { Fields<T>::of(t); }
  void get(T& out) { get_all(Fields<T>::of(out)); }
  template <class Tuple>
  void get_all(const Tuple& fields) {
    std::apply([this](auto&... field) { (this->get(field), ...); }, fields);
  }

 private:
  void fail(const std::string& why) { fail(invalid_argument("malformed message: " + why)); }
  void fail(Status why) {
    if (error_.ok()) error_ = std::move(why);
    left_ = {};
  }
  template <class T>
  void take(T& out, Expected<T> value) {
    if (value.ok())
      out = std::move(value).value();
    else
      fail(value.status());
  }
  template <class Name>
  void parse(Name& out) {
    std::string text;
    get(text);
    if (error_.ok()) take(out, Name::parse(text));
  }
  Expected<Tensor> tensor(std::uint64_t dtype, const std::vector<std::int64_t>& dims,
                          std::span<const std::byte> content);

  std::span<const std::byte> left_;
  Status error_;
};

}  // namespace troupe::detail
