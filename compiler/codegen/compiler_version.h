// Which compiler this is: part of every record and of the key of every cache.
#ifndef REGATTA_COMPILER_CODEGEN_COMPILER_VERSION_H_
#define REGATTA_COMPILER_CODEGEN_COMPILER_VERSION_H_

#include <string>
#include <string_view>

namespace regatta {

// First 16 hexadecimal digits of SHA-256 over the paths and texts of every
// source file under compiler/, taken when this program was built; then "/" and
// the tool: "3fa9c1d2e4b58a07/LLVM 19.1.7".
std::string CompilerVersionOf(std::string_view tool);

// The same by kind of target, for programs that link no code generator; "" for
// a kind that none is for. Equal to CompilerVersion(target) of compile.h;
// `driver` is the target's.
std::string CompilerVersionOfKind(std::string_view target_kind, int driver = 0);

// What a target says of a device whose driver offers the interface `driver`: 0,
// which is left out, where code for the newest one known is loaded by it, as by
// every later one.
int LimitingDriver(std::string_view target_kind, int driver);

}  // namespace regatta

#endif  // REGATTA_COMPILER_CODEGEN_COMPILER_VERSION_H_
