// Whole numbers in the byte order of our binary formats.
#ifndef REGATTA_COMPILER_MODULE_LITTLE_ENDIAN_H_
#define REGATTA_COMPILER_MODULE_LITTLE_ENDIAN_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace regatta {

template <typename T>
void AppendLittleEndian(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out += static_cast<char>(value >> (8 * i));
  }
}

// REQUIRES: `bytes` has sizeof(T) bytes from `offset` on.
template <typename T>
T LittleEndian(std::string_view bytes, size_t offset) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(static_cast<unsigned char>(bytes[offset + i]))
             << (8 * i);
  }
  return value;
}

}  // namespace regatta

#endif  // REGATTA_COMPILER_MODULE_LITTLE_ENDIAN_H_
