// What a part writes its loops with: fresh loop ids, buffers, and the
// translation of a stage's scalar expression into a loop value.
//
// One builder per lowering; not synchronised.
#ifndef REGATTA_COMPILER_LOWER_LOOP_BUILDER_H_
#define REGATTA_COMPILER_LOWER_LOOP_BUILDER_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/expr/expr.h"
#include "compiler/lower/loop_ir.h"

namespace regatta {

// `form` with every variable v replaced by bind(v).
Affine BindForm(const Affine& form, const std::function<Affine(int)>& bind);

class LoopBuilder {
 public:
  // Starts with a buffer for every input, output and internal tensor.
  // REQUIRES: `workload` outlives the builder.
  LoopBuilder(const Workload& workload, int threads);

  const Workload& workload() const { return workload_; }
  int threads() const { return program_.threads; }
  int NewVar() { return program_.num_vars++; }
  int AddBuffer(loop::Buffer buffer);
  const loop::Buffer& buffer(int id) const { return program_.buffers[id]; }
  // The buffer that holds a workload tensor whole.
  int TensorBuffer(int tensor) const { return tensor_buffer_[tensor]; }
  void AddKernel(std::string name, loop::StmtPtr body);

  // Row-major offset of `subscripts` in a tensor, with index ids replaced
  // through `bind`.
  Affine TensorOffset(int tensor, const std::vector<Affine>& subscripts,
                      const std::function<Affine(int index)>& bind) const;

  // How a stage's expression reads a tensor; absent: from its own buffer.
  using AccessHook =
      std::function<std::optional<loop::ValuePtr>(const Expr& access)>;
  // The loop value of an expression whose indices are bound by `bind` to forms
  // over loop ids, in a type wide enough to compute in: f32 for narrow floats,
  // i32 for narrow integers. A hook's value has its buffer's type. Padded
  // accesses get guards for the sides that can be left.
  loop::ValuePtr Translate(const ExprPtr& expr,
                           const std::function<Affine(int index)>& bind,
                           const AccessHook& hook = nullptr) const;

  // The load of an access from the tensor's own buffer, guarded where padded.
  loop::ValuePtr LoadTensor(const Expr& access,
                            const std::function<Affine(int index)>& bind) const;

  // The finished program without the scratch buffers that no kernel touches.
  // The builder is used up.
  loop::Program Finish();

 private:
  const Workload& workload_;
  loop::Program program_;
  std::vector<int> tensor_buffer_;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_LOWER_LOOP_BUILDER_H_
