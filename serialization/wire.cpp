#include "serialization/wire.hpp"

#include <array>
#include <new>

#include "serialization/detail/words.hpp"

namespace troupe {
namespace {

template <std::size_t number>
Expected<WireMessage> read_message(detail::WordReader& in) {
  using Rules = MessageAt<number>;
  typename Rules::Type message;
  in.get_all(Rules::fields(message));
  TROUPE_TRY(in.end());
  if constexpr (requires { Rules::check(message); }) TROUPE_TRY(Rules::check(message));
  return WireMessage(std::move(message));
}

using Reader = Expected<WireMessage> (*)(detail::WordReader&);

template <std::size_t... numbers>
constexpr std::array<Reader, kMessages> all_readers(std::index_sequence<numbers...>) {
  return {read_message<numbers>...};
}

}  // namespace

std::vector<std::byte> encode(const WireMessage& message) {
  detail::WordWriter out;
  out.word(message.index());
  std::visit([&]<class M>(const M& m) { out.put_all(MessageRules<M>::fields(m)); }, message);
  return out.take();
}

Expected<WireMessage> decode(std::span<const std::byte> bytes) try {
  constexpr auto kReaders = all_readers(std::make_index_sequence<kMessages>{});
  detail::WordReader in(bytes);
  const std::uint64_t number = in.word();
  if (number >= kMessages)
    return invalid_argument("message of unknown kind " + std::to_string(number));
  return kReaders[number](in);
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory for a message of " + std::to_string(bytes.size()) +
                            " bytes");
}

bool begins_as(std::uint64_t number, std::span<const std::byte> bytes) {
  return bytes.size() >= sizeof number && detail::WordReader(bytes).word() == number;
}

}  // namespace troupe
