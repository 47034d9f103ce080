// What the fuzzers of texts share.
#ifndef REGATTA_TESTS_FUZZ_FUZZ_TEXT_H_
#define REGATTA_TESTS_FUZZ_FUZZ_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace regatta::fuzz {

inline std::string_view TextOf(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace regatta::fuzz

#endif  // REGATTA_TESTS_FUZZ_FUZZ_TEXT_H_
