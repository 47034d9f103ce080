#include "base/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace regatta {
namespace {

constexpr size_t kLongest = 4;

bool Within(char c, unsigned char low, unsigned char high) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= low && byte <= high;
}

bool Continues(char c) { return Within(c, 0x80, 0xBF); }

}  // namespace

size_t Utf8Character(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  size_t size = 0;
  // What the second byte may be keeps overlong forms, surrogates and what lies
  // beyond the last character out.
  unsigned char low = 0x80, high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    size = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    size = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    size = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  }
  if (size == 0 || text.size() < size || !Within(text[1], low, high)) return 0;
  for (size_t i = 2; i < size; ++i) {
    if (!Continues(text[i])) return 0;
  }
  return size;
}

bool IsUtf8(std::string_view text) {
  size_t i = 0;
  // Most of most texts is ASCII.
  for (uint64_t eight; i + sizeof eight <= text.size(); i += sizeof eight) {
    std::memcpy(&eight, text.data() + i, sizeof eight);
    if ((eight & 0x8080808080808080) != 0) break;
  }
  while (i < text.size()) {
    const size_t size = Utf8Character(text.substr(i));
    if (size == 0) return false;
    i += size;
  }
  return true;
}

std::string Utf8(std::string_view text) {
  std::string clean(text);
  for (size_t i = 0; i < clean.size();) {
    const size_t size = Utf8Character(text.substr(i));
    if (size == 0) clean[i] = '?';
    i += std::max<size_t>(1, size);
  }
  return clean;
}

std::string Utf8Beginning(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return Utf8(text);
  size_t end = bytes;
  for (size_t back = 1; back < kLongest && back <= bytes; ++back) {
    // A character that begins before the cut and ends behind it.
    if (Utf8Character(text.substr(bytes - back)) > back) end = bytes - back;
  }
  return Utf8(text.substr(0, end));
}

std::string Utf8End(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return Utf8(text);
  const size_t cut = text.size() - bytes;
  size_t begin = cut;
  for (size_t back = 1; back < kLongest && back <= cut; ++back) {
    const size_t size = Utf8Character(text.substr(cut - back));
    if (size > back) begin = cut - back + size;
  }
  return Utf8(text.substr(begin));
}

}  // namespace regatta
