#include "base/redact.h"

#include <cctype>

namespace regatta {
namespace {

constexpr std::string_view kToken = "rgt1-";
constexpr std::string_view kBegin = "-----BEGIN ";
constexpr std::string_view kKey = "PRIVATE KEY-----";
constexpr std::string_view kEnd = "-----END ";

bool IsHexDigit(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}

// Where the secret that begins at `at` ends; `at` itself where there is none.
size_t EndOfToken(std::string_view text, size_t at) {
  while (at < text.size() && IsHexDigit(text[at])) ++at;
  return at;
}

// Where the body of a key, whose BEGIN line ends at `at`, is over.
size_t EndOfKey(std::string_view text, size_t at) {
  const size_t end = text.find(kEnd, at);
  return end == std::string_view::npos ? text.size() : end;
}

}  // namespace

std::string Redact(std::string_view text) {
  std::string result;
  size_t done = 0;
  const auto blot = [&](size_t from, size_t to) {
    if (to == from) return;
    result.append(text.substr(done, from - done)).append("...");
    done = to;
  };
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with(kToken)) {
      const size_t from = at + kToken.size();
      at = EndOfToken(text, from);
      blot(from, at);
    } else if (rest.starts_with(kBegin)) {
      // "EC PRIVATE KEY-----", "PRIVATE KEY-----": the label is short.
      const size_t label = rest.substr(0, 64).find(kKey);
      at += kBegin.size();
      if (label == std::string_view::npos) continue;
      const size_t from = at - kBegin.size() + label + kKey.size();
      at = EndOfKey(text, from);
      blot(from, at);
    } else {
      ++at;
    }
  }
  return result.append(text.substr(done));
}

}  // namespace regatta
