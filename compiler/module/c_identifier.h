// Names that C and C++ accept.
#ifndef REGATTA_COMPILER_MODULE_C_IDENTIFIER_H_
#define REGATTA_COMPILER_MODULE_C_IDENTIFIER_H_

#include <string>
#include <string_view>

namespace regatta {

// [A-Za-z_][A-Za-z0-9_]*, at most 128 characters, no keyword of C or C++, and
// none of the names that both reserve (a leading underscore with a capital or
// another underscore).
bool IsCIdentifier(std::string_view name);

// `name` with every other character replaced by '_' and, where that is still no
// identifier, '_' appended or "x" put in front. "" becomes "x".
std::string ToCIdentifier(std::string_view name);

}  // namespace regatta

#endif  // REGATTA_COMPILER_MODULE_C_IDENTIFIER_H_
