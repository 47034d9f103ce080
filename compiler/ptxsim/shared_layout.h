// Where the shared variables of an entry and of the functions that it calls
// lie.
#ifndef REGATTA_COMPILER_PTXSIM_SHARED_LAYOUT_H_
#define REGATTA_COMPILER_PTXSIM_SHARED_LAYOUT_H_

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "compiler/ptxsim/syntax.h"

namespace regatta::ptxsim {

class SharedLayout {
 public:
  // Looks through `entry` and what it calls. Static variables come first, in
  // the order in which they are met; the dynamic array follows.
  static SharedLayout Of(const RawModule& module, const RawFunction& entry);

  // `id` as in Operand::id, of a shared variable that `function` names.
  uint64_t Address(const RawFunction& function, int id) const;

  uint64_t static_bytes() const { return static_bytes_; }
  bool dynamic() const { return dynamic_; }

 private:
  void Visit(const RawModule& module, const RawFunction& function, int depth);
  void Add(const RawFunction* owner, int id, const Variable& variable);

  // Key: the function, or null for the module's variables.
  std::map<std::pair<const RawFunction*, int>, uint64_t> addresses_;
  std::set<const RawFunction*> visited_;
  uint64_t static_bytes_ = 0;
  uint64_t dynamic_alignment_ = 16;
  bool dynamic_ = false;
};

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_SHARED_LAYOUT_H_
