#include "compiler/module/c_identifier.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"

namespace regatta {
namespace {

constexpr size_t kMaxBytes = 128;

// Keywords of C17, C23 and C++20, and the standard macros spelled like names.
constexpr auto kKeywords = std::to_array<std::string_view>({"alignas",
                                                            "alignof",
                                                            "and",
                                                            "and_eq",
                                                            "asm",
                                                            "auto",
                                                            "bitand",
                                                            "bitor",
                                                            "bool",
                                                            "break",
                                                            "case",
                                                            "catch",
                                                            "char",
                                                            "char16_t",
                                                            "char32_t",
                                                            "char8_t",
                                                            "class",
                                                            "co_await",
                                                            "co_return",
                                                            "co_yield",
                                                            "compl",
                                                            "concept",
                                                            "const",
                                                            "const_cast",
                                                            "consteval",
                                                            "constexpr",
                                                            "constinit",
                                                            "continue",
                                                            "decltype",
                                                            "default",
                                                            "delete",
                                                            "do",
                                                            "double",
                                                            "dynamic_cast",
                                                            "else",
                                                            "enum",
                                                            "explicit",
                                                            "export",
                                                            "extern",
                                                            "false",
                                                            "float",
                                                            "for",
                                                            "friend",
                                                            "goto",
                                                            "if",
                                                            "inline",
                                                            "int",
                                                            "long",
                                                            "mutable",
                                                            "namespace",
                                                            "new",
                                                            "noexcept",
                                                            "not",
                                                            "not_eq",
                                                            "nullptr",
                                                            "operator",
                                                            "or",
                                                            "or_eq",
                                                            "private",
                                                            "protected",
                                                            "public",
                                                            "register",
                                                            "reinterpret_cast",
                                                            "requires",
                                                            "restrict",
                                                            "return",
                                                            "short",
                                                            "signed",
                                                            "sizeof",
                                                            "static",
                                                            "static_assert",
                                                            "static_cast",
                                                            "struct",
                                                            "switch",
                                                            "template",
                                                            "this",
                                                            "thread_local",
                                                            "throw",
                                                            "true",
                                                            "try",
                                                            "typedef",
                                                            "typeid",
                                                            "typename",
                                                            "typeof",
                                                            "typeof_unqual",
                                                            "union",
                                                            "unsigned",
                                                            "using",
                                                            "virtual",
                                                            "void",
                                                            "volatile",
                                                            "wchar_t",
                                                            "while",
                                                            "xor",
                                                            "xor_eq",
                                                            "I",
                                                            "ptrdiff_t",
                                                            "intptr_t",
                                                            "uintptr_t",
                                                            "intmax_t",
                                                            "uintmax_t",
                                                            "offsetof",
                                                            "NULL",
                                                            "EOF",
                                                            "errno",
                                                            "main",
                                                            "size_t",
                                                            "int8_t",
                                                            "int16_t",
                                                            "int32_t",
                                                            "int64_t",
                                                            "uint8_t",
                                                            "uint16_t",
                                                            "uint32_t",
                                                            "uint64_t",
                                                            "linux",
                                                            "unix"});

// INT8_MAX, SIZE_MAX, UINT64_C, ...: macros of <stdint.h>.
bool IsLimitMacro(std::string_view name) {
  const auto begins = [&](std::string_view part) {
    return name.substr(0, part.size()) == part;
  };
  const auto ends = [&](std::string_view part) {
    return name.size() > part.size() &&
           name.substr(name.size() - part.size()) == part;
  };
  const bool type = begins("INT") || begins("UINT") || begins("SIZE_") ||
                    begins("PTRDIFF_") || begins("WCHAR_") || begins("WINT_") ||
                    begins("SIG_ATOMIC_");
  return type && (ends("_MAX") || ends("_MIN") || ends("_C") || ends("_WIDTH"));
}

bool IsKeyword(std::string_view name) {
  return IsLimitMacro(name) ||
         std::find(kKeywords.begin(), kKeywords.end(), name) != kKeywords.end();
}

bool IsReservedShape(std::string_view name) {
  return name.size() >= 2 && name[0] == '_' &&
         (name[1] == '_' || absl::ascii_isupper(name[1]));
}

}  // namespace

bool IsCIdentifier(std::string_view name) {
  if (name.empty() || name.size() > kMaxBytes || absl::ascii_isdigit(name[0])) {
    return false;
  }
  const bool spelled = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '_';
  });
  return spelled && !IsKeyword(name) && !IsReservedShape(name);
}

std::string ToCIdentifier(std::string_view name) {
  std::string safe(name.substr(0, kMaxBytes - 1));
  for (char& c : safe) {
    if (!absl::ascii_isalnum(c)) c = '_';
  }
  if (safe.empty() || absl::ascii_isdigit(safe[0]) || IsReservedShape(safe)) {
    safe.insert(0, "x");
  }
  if (IsKeyword(safe)) safe += '_';
  return safe;
}

}  // namespace regatta
