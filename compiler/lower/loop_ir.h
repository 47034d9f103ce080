// Lowered code: loops over flat buffers. What sketches emit, what passes
// rewrite, and what every code generator (LLVM, OpenCL C, CUDA C++) reads.
//
// All extents are constants and all offsets are affine in the loop variables;
// tails of tiles are separate loops with their own constant extents, or guarded
// statements, so there are no data-dependent bounds. Variables of Affine forms
// here are loop ids.
//
// A kernel is written for a processor or for a device that runs groups of
// threads (work-items). A device kernel is a nest of group loops, in it a nest
// of thread loops, and in that the program of one thread:
//   group g1 < 4 { group g0 < 8 { thread t1 < 8 { thread t0 < 32 { ... } } } }
// with at most three of each. The innermost group and thread loop is dimension
// 0, whose neighbours run together. Nothing orders groups. Threads of one group
// meet at barriers; between two barriers, nothing orders them, so what one of
// them stores there no other may touch. The passes keep group and thread loops
// of one iteration: they are what makes a kernel a device kernel.
//
// Values and statements are immutable and shared; a Program is a value.
#ifndef REGATTA_COMPILER_LOWER_LOOP_IR_H_
#define REGATTA_COMPILER_LOWER_LOOP_IR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "compiler/expr/expr.h"

namespace regatta::loop {

enum class Scope {
  kInput,      // a tensor the caller gives
  kOutput,     // a tensor the caller gets
  kWorkspace,  // scratch in memory, alive for the whole call
  kRegister,   // meant to live in registers: indexed by constants once
               // unrolled and vector loops are expanded. Device kernels: each
               // thread has its own
  kLocal,      // memory that the threads of one group share; each group has its
               // own, and nothing is in it at first. Device kernels only
  kFragment,   // a thread's share of matrices as matrix units take them: words
               // of 32 bits, each some neighbours of a narrow type. Only
               // intrinsics touch it; else as kRegister. Device kernels only
};

inline constexpr int64_t kPixelElements = 4;  // of an image

struct Buffer {
  std::string name;
  DType dtype = DType::kF32;
  int64_t elements = 0;
  Scope scope = Scope::kWorkspace;
  int tensor = -1;  // workload tensor that it holds whole, else -1
  // Workspace written inside a parallel loop and used by one iteration only:
  // each thread gets its own copy.
  bool per_thread = false;
  // Elements of a row of an image: memory that is read and written in pixels of
  // four elements through caches of its own. 0: plain memory. See
  // image_verify.h.
  int64_t image_row = 0;
  // Local memory: 0, or a power of two of elements, 128 bytes or more, after
  // which the order of 16-byte chunks within lines of 128 bytes changes, so
  // that chunks below each other lie in different banks: SwizzledElement.
  // Nobody but who turns an offset into an address sees it. The elements fill
  // whole lines.
  int64_t swizzle = 0;
};

// The place of element `offset`: chunk c of a line is at c XOR (offset /
// swizzle % 8). `offset` itself where the buffer has no swizzle.
int64_t SwizzledElement(const Buffer& buffer, int64_t offset);
// Elements of a 16-byte chunk.
int64_t SwizzleChunk(const Buffer& buffer);

// 0 <= form < bound.
struct Guard {
  Affine form;
  int64_t bound = 0;
};

struct Value;
using ValuePtr = std::shared_ptr<const Value>;

// What one instruction of some processors adds to a block of accumulators:
//   c[cols*i + j] += sum over e < depth of a[depth*i + e] * b[depth*j + e]
// for i < rows, j < cols. An sdot of four lanes is 1x4x4, an smmla 2x2x8.
struct ProductBlock {
  int rows = 1, cols = 1, depth = 1;
  bool unsigned_a = false;  // bytes of a count from 0 to 255
  friend bool operator==(const ProductBlock&, const ProductBlock&) = default;
};

struct Value {
  enum class Kind {
    kConst,   // `constant`
    kIndex,   // `offset` as a number of type `dtype`
    kLoad,    // element `offset` of `buffer`; if a guard fails, `constant`
              // without touching memory
    kUnary,   // `unary`(operands[0])
    kBinary,  // operands[0] `binary` operands[1]
    kSelect,  // operands[0] ? operands[1] : operands[2]
    kCast,    // operands[0] converted to `dtype`
    // A `block` of sums of products of what follows two plain loads, a and b,
    // in i32 (i8 operands) or f32 (bf16 operands, rounded in any order). Only
    // as the whole value of a store that accumulates a sum, outside vector
    // loops; the store is then one to rows*cols elements from its offset on.
    // For targets whose code generator says that they have the block
    // (Target::products).
    kProducts,
  };
  Kind kind;
  DType dtype = DType::kF32;
  double constant = 0;
  int buffer = -1;
  Affine offset;
  std::vector<Guard> guards;
  UnaryOp unary = UnaryOp::kNeg;
  BinaryOp binary = BinaryOp::kAdd;
  ProductBlock block;
  std::vector<ValuePtr> operands;
};

enum class LoopKind {
  kSerial,
  kParallel,  // iterations are independent; outermost in a kernel, one level
  kUnrolled,  // expanded; `unroll` on a serial loop expands it partly
  kVector,    // iterations are lanes of one vector operation. The innermost
              // loop; extent at most a few hardware vectors. A load whose
              // offset has coefficient 1 is a vector load, 0 a broadcast,
              // anything else a gather. An accumulating store whose offset does
              // not depend on the lane reduces across lanes.
  kGroup,     // the loops around a device kernel: see above. Iterations are
  kThread,    // independent (groups), or run side by side (threads)
};

// An element of a buffer by its address, or a number.
struct IntrinsicOperand {
  int buffer = -1;  // -1: `number`
  Affine offset;
  int64_t number = 0;
  // Where one fails, zeros are read, without touching memory. Only for operands
  // that may be guarded (intrinsics.h).
  std::vector<Guard> guards;
};

struct Stmt;
using StmtPtr = std::shared_ptr<const Stmt>;

struct Stmt {
  enum class Kind {
    kFor,    // for `var` in [0, extent): body, of `loop` kind
    kStore,  // buffer[offset] = value, or op= when `accumulate` is not kNone
    kBlock,  // `body` in order
    kIf,     // body if every one of `guards` holds. Device kernels only
    kLet,    // body with `var` = `offset` / `divisor` % `extent`, rounded down;
             // `offset` is never negative. What is not affine in the loop
             // variables (one number that counts several) becomes affine in
             // such a variable. Device kernels only, not in vector loops
    kBarrier,  // waits for all threads of the group; what they stored before is
               // what all of them read behind it. Device kernels only, where
               // every thread of the group comes by equally often
    kIntrinsic,  // `intrinsic` of `operands`: intrinsics.h. Device kernels only
  };
  Kind kind;
  // kFor, kLet
  int var = -1;  // unique in the program
  int64_t extent = 0;
  int64_t divisor = 1;  // kLet
  LoopKind loop = LoopKind::kSerial;
  int64_t unroll = 1;  // kSerial: copies of the body per iteration; the
                       // remainder runs one at a time
  // kStore
  int buffer = -1;
  Affine offset;  // kLet too
  ValuePtr value;
  Reduction accumulate = Reduction::kNone;
  bool streaming = false;  // a hint: what is stored is not read soon, so caches
                           // need not keep it
  // kIf
  std::vector<Guard> guards;
  // kIntrinsic
  std::string intrinsic;
  std::vector<IntrinsicOperand> operands;
  // kFor, kIf and kLet (one element), and kBlock
  std::vector<StmtPtr> body;
};

// One kernel: runs to its end before the next one starts.
struct Kernel {
  std::string name;
  StmtPtr body;
};

struct Program {
  std::vector<Buffer> buffers;  // workload inputs in order, outputs in order,
                                // then workspace and registers
  std::vector<Kernel> kernels;
  int num_vars = 0;  // loop ids are 0 .. num_vars-1
  int threads = 1;   // at most this many run a parallel loop
};

// Builders; each returns a fresh node.
ValuePtr Const(double value, DType dtype = DType::kF32);
ValuePtr Index(Affine form, DType dtype);
ValuePtr Load(const Buffer& buffer, int id, Affine offset,
              std::vector<Guard> guards = {}, double pad_value = 0);
ValuePtr Unary(UnaryOp op, ValuePtr a);
ValuePtr Binary(BinaryOp op, ValuePtr a, ValuePtr b);
ValuePtr Select(ValuePtr condition, ValuePtr a, ValuePtr b);
ValuePtr Cast(ValuePtr a, DType dtype);
ValuePtr Products(ValuePtr a, ValuePtr b, ProductBlock block);
StmtPtr For(int var, int64_t extent, LoopKind kind, StmtPtr body,
            int64_t unroll = 1);
StmtPtr Store(int buffer, Affine offset, ValuePtr value,
              Reduction accumulate = Reduction::kNone, bool streaming = false);
StmtPtr Block(std::vector<StmtPtr> body);
StmtPtr If(std::vector<Guard> guards, StmtPtr body);
StmtPtr Let(int var, int64_t extent, Affine form, int64_t divisor,
            StmtPtr body);
StmtPtr Barrier();
StmtPtr CallIntrinsic(std::string_view name,
                      std::vector<IntrinsicOperand> operands = {});

// Whether a kernel is a device kernel: a group or thread loop around all of it.
bool IsDeviceKernel(const Kernel& kernel);

// Calls `visit` with every buffer that `stmt` and what is in it touch, once for
// each load and store; what it stores to with `stores` set.
void VisitBuffers(const Stmt& stmt,
                  const std::function<void(int buffer, bool stores)>& visit);

// The value that `reduction` starts from, in `dtype` (sum 0, max -inf or the
// least integer).
double Identity(Reduction reduction, DType dtype);

// Indented text, one statement a line, for people, tests and dumps.
std::string ToString(const Program& program);
// One statement without what it contains; one value.
std::string ToString(const Program& program, const Stmt& stmt);
std::string ToString(const Program& program, const Value& value);

// OK, or Internal naming the statement. Checked: loop ids unique; extents
// positive; offsets in bounds of their buffers (guards considered); register
// buffers indexed by constants under unrolled and vector loops (a serial loop
// whose `unroll` is its extent counts as unrolled); register and per-thread
// buffers used within one kernel, and there within one parallel loop or outside
// any; parallel loops outside any other loop, vector loops innermost; nothing
// read or accumulated into before a statement above has written it; no store in
// a parallel loop that every iteration would do to the same element; streaming
// stores replace what is in memory; types consistent: nothing converts but a
// kCast, not even a store.
// Of device kernels: their shape as above; local buffers used within one of
// them; no barrier, and no intrinsic of whole warps, inside a vector loop or
// under a guard that threads may see differently; no store that all threads of
// a group, or all groups, would do to the same element, unless a guard leaves
// one of them. (That no two threads meet at one element without a barrier is
// more than this: the loop interpreter of the tests finds that out.)
absl::Status Verify(const Program& program);

}  // namespace regatta::loop

#endif  // REGATTA_COMPILER_LOWER_LOOP_IR_H_
