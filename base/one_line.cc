#include "base/one_line.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace regatta {
namespace {

std::string Written(unsigned char c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return absl::StrCat("\\x", absl::Hex(c, absl::kZeroPad2));
  }
}

// The three bytes there are a character that ends a line or turns the direction
// of text: U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069. 0: none.
unsigned Direction(std::string_view at) {
  if (at.size() < 3 || static_cast<unsigned char>(at[0]) != 0xE2) return 0;
  const unsigned code = 0x2000u |
                        (static_cast<unsigned char>(at[1]) & 0x3Fu) << 6 |
                        (static_cast<unsigned char>(at[2]) & 0x3Fu);
  const bool found = code == 0x200E || code == 0x200F ||
                     (code >= 0x2028 && code <= 0x202E) ||
                     (code >= 0x2066 && code <= 0x2069);
  return found ? code : 0;
}

}  // namespace

std::string OneLine(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F: some terminals take them for the start of a command.
    if (c == 0xC2 && i + 1 < text.size() &&
        (static_cast<unsigned char>(text[i + 1]) & 0xE0) == 0x80) {
      line += Written(static_cast<unsigned char>(text[++i]));
    } else if (const unsigned code = Direction(text.substr(i)); code != 0) {
      absl::StrAppend(&line, "\\u", absl::Hex(code));
      i += 2;
    } else if (c < 0x20 || c == 0x7F) {
      line += Written(c);
    } else if (const size_t size = Utf8Character(text.substr(i)); size == 0) {
      line += Written(c);
    } else {
      line += text.substr(i, size);
      i += size - 1;
    }
  }
  return line;
}

}  // namespace regatta
