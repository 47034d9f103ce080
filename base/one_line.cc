#include "base/one_line.h"

#include <cstddef>

#include "absl/strings/str_cat.h"

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
    } else if (c < 0x20 || c == 0x7F) {
      line += Written(c);
    } else {
      line += text[i];
    }
  }
  return line;
}

}  // namespace regatta
