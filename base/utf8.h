// Text that came from outside as the UTF-8 that a message's string must be.
#ifndef REGATTA_BASE_UTF8_H_
#define REGATTA_BASE_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace regatta {

// Bytes of the character of UTF-8 that `text` begins with, 1 to 4; 0 where it
// begins with none: a byte out of place, an overlong form, a surrogate, beyond
// U+10FFFF, cut off, or nothing at all (RFC 3629, section 4).
size_t Utf8Character(std::string_view text);

bool IsUtf8(std::string_view text);

// `text` with '?' for each byte that belongs to no character of UTF-8: as long
// as it was, and what was UTF-8 is unchanged.
std::string Utf8(std::string_view text);

// Utf8 of the beginning of `text` and of its end: at most `bytes` bytes,
// without the part of a character that the cut leaves.
std::string Utf8Beginning(std::string_view text, size_t bytes);
std::string Utf8End(std::string_view text, size_t bytes);

}  // namespace regatta

#endif  // REGATTA_BASE_UTF8_H_
