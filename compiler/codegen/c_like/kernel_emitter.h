// Loops to the text of one kernel. What is emitted is already unrolled: every
// element of a register buffer is a variable of its own, lanes of vector loops
// are scalars, and vectors exist only to move lanes to and from memory. Loads
// are shared here: equal loads with no store between them are one.
#ifndef REGATTA_COMPILER_CODEGEN_C_LIKE_KERNEL_EMITTER_H_
#define REGATTA_COMPILER_CODEGEN_C_LIKE_KERNEL_EMITTER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/codegen/c_like/dialect.h"
#include "compiler/lower/loop_ir.h"

namespace regatta::c_like {

struct EmittedKernel {
  std::string text;           // one function
  std::vector<int> buffers;   // its arguments: ids in the program
  std::vector<int64_t> grid;  // as in ModuleKernel
  std::vector<int64_t> group;
  int64_t group_threads = 1;
  int64_t local_bytes = 0;   // that a group uses
  int64_t launch_bytes = 0;  // of them, those to give at launch
  bool uses_f64 = false;
  std::string unknown_intrinsic;  // that the dialect has not; "" when none
  int64_t image_width = 0, image_height = 0;  // of the largest image, in pixels
};

class KernelEmitter {
 public:
  // REQUIRES: both outlive the emitter.
  KernelEmitter(const loop::Program& program, const Dialect& dialect)
      : program_(program), dialect_(dialect) {}

  // A kernel without group and thread loops is run by one thread.
  EmittedKernel Emit(const loop::Kernel& kernel, const std::string& entry);

 private:
  // One text for all lanes, or one per lane.
  using Val = std::vector<std::string>;

  // Value of a loop variable, or a let: `name` (a variable in [0, span]) plus
  // `constant`; no name: a constant.
  struct Binding {
    std::string name;
    int64_t span = 0;
    int64_t constant = 0;
  };
  // Iterations [first, first + count) of the vector loop over `var`.
  struct Lanes {
    int var = -1;
    int64_t first = 0;
    int count = 1;
  };
  // An affine form at the current place; `lane`: the step from lane to lane.
  struct Form {
    std::vector<std::pair<std::string, int64_t>> terms;
    int64_t constant = 0;
    int64_t lane = 0;
    int64_t reach = 0;  // no partial sum is beyond
    bool wide = false;  // may need 64 bits
  };
  struct FormGuard {
    Form form;
    int64_t bound;
  };

  // kernel_emitter.cc: statements
  const loop::Stmt& EmitGeometry(const loop::Kernel& kernel);
  void BindIds(const std::vector<const loop::Stmt*>& loops, bool groups);
  void EmitStmt(const loop::Stmt& stmt);
  void EmitFor(const loop::Stmt& stmt);
  void EmitSerial(const loop::Stmt& stmt);
  void EmitLoop(const loop::Stmt& stmt, int64_t first, int64_t count,
                int64_t copies);
  void EmitExpanded(const loop::Stmt& stmt, int64_t first, int64_t count);
  void EmitVector(const loop::Stmt& stmt);
  void EmitIf(const loop::Stmt& stmt);
  void EmitLet(const loop::Stmt& stmt);
  void EmitStore(const loop::Stmt& stmt);
  void EmitAccumulate(const loop::Stmt& stmt);
  void EmitBarrier();
  void EmitIntrinsic(const loop::Stmt& stmt);
  std::vector<std::string> IntrinsicOperand(const loop::IntrinsicOperand& value,
                                            int64_t bytes, bool may_be_guarded);
  void Line(std::string_view text);
  void Open(std::string_view head);
  void Close();

  // kernel_memory.cc: addresses, loads, stores
  Form Resolve(const Affine& form) const;
  // Those that are not known to hold; absent when one is known to fail.
  std::optional<std::vector<FormGuard>> ResolveGuards(
      const std::vector<loop::Guard>& guards) const;
  // Whether a guard says the same for all lanes.
  bool Uniform(const FormGuard& guard) const;
  std::string Text(const Form& form, int64_t lane) const;
  std::string Condition(const std::vector<FormGuard>& guards,
                        int64_t lane) const;
  std::string Place(int buffer) const;
  // The element of `buffer` that lane `lane` of `form` is at.
  std::string ElementText(int buffer, const Form& form, int64_t lane) const;
  std::string Register(int buffer, int64_t element);
  // `raw`: as it is in memory.
  Val Load(const loop::Value& load, bool raw);
  Val LoadScalars(int buffer, const Form& form, int count,
                  const std::vector<FormGuard>& guards, const std::string& pad,
                  bool raw);
  Val LoadRuns(int buffer, const Form& form,
               const std::vector<FormGuard>& guards, const std::string& pad,
               bool raw);
  Val RunsAt(int buffer, const Form& form, const std::vector<FormGuard>& guards,
             bool raw);
  void StoreTo(int buffer, const Form& form, Val value, bool raw);
  int RunLength(int buffer, const Form& form, int from) const;
  Run RunAt(int buffer, const Form& form, int from, int count) const;
  // kernel_images.cc: a pixel's column and row, and what is in them.
  struct Pixel {
    std::string x, y;
  };
  Pixel PixelAt(int buffer, const Form& form, int from,
                const std::vector<FormGuard>& guards) const;
  bool StaysInRow(const Form& column, int from, int64_t row,
                  const std::vector<FormGuard>& guards) const;
  Val LoadPixels(int buffer, const Form& form,
                 const std::vector<FormGuard>& guards);
  void StorePixels(int buffer, const Form& form, const Val& value);
  bool IsImage(int id) const { return buffer(id).image_row > 0; }

  std::string FromStorage(DType dtype, const std::string& text) const;
  std::string ToStorage(DType dtype, const std::string& text) const;
  void Forget(int buffer);
  void ForgetShared();
  void ForgetStoredIn(const loop::Stmt& stmt);

  // kernel_values.cc: arithmetic
  Val Emit(const loop::Value& value);
  Val EmitUnary(const loop::Value& value);
  Val EmitBinary(const loop::Value& value);
  Val EmitSelect(const loop::Value& value);
  Val EmitCast(const loop::Value& value);
  std::string Literal(double number, DType dtype) const;
  std::string RawLiteral(double number, DType dtype) const;
  std::string Unary(UnaryOp op, const std::string& x, DType dtype) const;
  std::string Binary(BinaryOp op, const std::string& a, const std::string& b,
                     DType dtype) const;
  std::string Combine(Reduction reduction, const std::string& a,
                      const std::string& b, DType dtype) const;
  // A result in a narrow float that registers keep in f32, rounded to it.
  std::string Rounded(const std::string& text, DType dtype) const;
  std::string CastText(const std::string& x, DType from, DType to) const;
  // A variable for `text`, unless that is one or a number already.
  std::string Named(const std::string& text, const std::string& type);
  // Text that may be written several times, or nested in more.
  Val Settle(Val value, DType dtype);
  void Broadcast(Val& value, DType dtype, size_t lanes);

  const loop::Buffer& buffer(int id) const { return program_.buffers[id]; }

  const loop::Program& program_;
  const Dialect& dialect_;
  std::string out_;
  int depth_ = 1;
  int next_name_ = 0;
  std::map<int, Binding> vars_;
  Lanes lanes_;
  std::set<int> stored_;         // buffers that the kernel stores to
  bool barrier_global_ = false;  // barriers order global memory too
  std::set<std::pair<int, int64_t>> registers_;  // elements in use
  // Loads that are still good, by what they load; one map per open block.
  struct Known {
    int buffer;
    Val value;
  };
  std::vector<std::map<std::string, Known>> known_;
  EmittedKernel result_;
};

}  // namespace regatta::c_like

#endif  // REGATTA_COMPILER_CODEGEN_C_LIKE_KERNEL_EMITTER_H_
