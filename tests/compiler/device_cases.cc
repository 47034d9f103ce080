#include "tests/compiler/device_cases.h"

#include <gtest/gtest.h>

#include <iterator>
#include <utility>

#include "tests/compiler/codegen_support.h"
#include "tests/compiler/device_programs.h"
#include "tests/compiler/device_support.h"
#include "tests/support/loop_interpreter.h"

namespace regatta {
namespace {

using loop::Binary;
using loop::Block;
using loop::For;
using loop::If;
using loop::LoopKind;
using loop::Scope;
using loop::StmtPtr;
using loop::Store;
using loop::ValuePtr;

// Sums of rows of x[rows, columns]: a group a row, partial sums halved in local
// memory.
loop::Program RowSums(int64_t rows, int64_t columns, Reduction reduction,
                      DType dtype) {
  constexpr int64_t kThreads = 16;
  ProgramWriter w;
  const int x = w.Add("x", Scope::kInput, dtype, rows * columns);
  const int y = w.Add("y", Scope::kOutput, dtype, rows);
  const int part = w.Add("part", Scope::kLocal, dtype, kThreads);
  const int mine = w.Add("mine", Scope::kRegister, dtype, 1);
  const int g = w.Var(), t = w.Var(), i = w.Var();
  const double identity = loop::Identity(reduction, dtype);
  const Affine column = V(t) + V(i, kThreads);
  std::vector<StmtPtr> body = {
      Store(mine, Affine(0), loop::Const(identity, dtype)),
      For(i, (columns + kThreads - 1) / kThreads, LoopKind::kSerial,
          Store(
              mine, Affine(0),
              w.Load(x, V(g, columns) + column, {{column, columns}}, identity),
              reduction)),
      Store(part, V(t), w.Load(mine, Affine(0)))};
  for (int64_t half = kThreads / 2; half >= 1; half /= 2) {
    body.push_back(loop::Barrier());
    body.push_back(
        If({{V(t), half}},
           Store(part, V(t), w.Load(part, V(t) + Affine(half)), reduction)));
  }
  body.push_back(If({{V(t), 1}}, Store(y, V(g), w.Load(part, Affine(0)))));
  w.Kernel(For(g, rows, LoopKind::kGroup,
               For(t, kThreads, LoopKind::kThread, Block(std::move(body)))));
  return w.program;
}

// y = x transposed, through local memory; gathers, and stores with a stride.
loop::Program Transpose(int64_t rows, int64_t columns, DType dtype) {
  constexpr int64_t kTile = 8;
  ProgramWriter w;
  const int x = w.Add("x", Scope::kInput, dtype, rows * columns);
  const int y = w.Add("y", Scope::kOutput, dtype, rows * columns);
  const int tile = w.Add("tile", Scope::kLocal, dtype, kTile * (kTile + 1));
  const int gr = w.Var(), gc = w.Var(), t = w.Var(), i = w.Var(), j = w.Var();
  const Affine r = V(gr, kTile) + V(t), c = V(gc, kTile) + V(i);
  const Affine to_row = V(gc, kTile) + V(t), to_column = V(gr, kTile) + V(j);
  w.Kernel(For(
      gr, (rows + kTile - 1) / kTile, LoopKind::kGroup,
      For(gc, (columns + kTile - 1) / kTile, LoopKind::kGroup,
          For(t, kTile, LoopKind::kThread,
              Block({For(i, kTile, LoopKind::kVector,
                         Store(tile, V(t, kTile + 1) + V(i),
                               w.Load(x, r * columns + c,
                                      {{r, rows}, {c, columns}}, 3))),
                     loop::Barrier(),
                     For(j, kTile, LoopKind::kVector,
                         If({{to_row, columns}, {to_column, rows}},
                            Store(y, to_row * rows + to_column,
                                  w.Load(tile, V(j, kTile + 1) + V(t)))))})))));
  return w.program;
}

// Three kernels that hand a workspace on, the second with one thread only.
loop::Program ThreeKernels() {
  constexpr int64_t kN = 96;
  ProgramWriter w;
  const int x = w.Add("x", Scope::kInput, DType::kI32, kN);
  const int y = w.Add("y", Scope::kOutput, DType::kI32, kN);
  const int s = w.Add("s", Scope::kWorkspace, DType::kI32, kN);
  const int total = w.Add("total", Scope::kWorkspace, DType::kI32, 1);
  const auto over = [&](const std::function<StmtPtr(Affine)>& body) {
    const int g = w.Var(), t = w.Var();
    w.Kernel(For(g, 3, LoopKind::kGroup,
                 For(t, 32, LoopKind::kThread, body(V(g, 32) + V(t)))));
  };
  over([&](Affine at) {
    return Store(s, at, Binary(BinaryOp::kMul, w.Load(x, at), w.Load(x, at)));
  });
  const int i = w.Var();
  w.Kernel(Block(
      {Store(total, Affine(0), loop::Const(0, DType::kI32)),
       For(i, kN, LoopKind::kSerial,
           Store(total, Affine(0), w.Load(s, V(i)), Reduction::kSum), 5)}));
  over([&](Affine at) {
    return Store(
        y, at, Binary(BinaryOp::kSub, w.Load(total, Affine(0)), w.Load(s, at)));
  });
  return w.program;
}

// Sums across the lanes of vector loops, of lengths that are no powers of two.
loop::Program AcrossLanes(int64_t length, DType dtype) {
  ProgramWriter w;
  const int x = w.Add("x", Scope::kInput, dtype, 8 * length);
  const int y = w.Add("y", Scope::kOutput, dtype, 8);
  const int t = w.Var(), i = w.Var();
  w.Kernel(For(t, 8, LoopKind::kThread,
               Block({Store(y, V(t), loop::Const(0, dtype)),
                      For(i, length, LoopKind::kVector,
                          Store(y, V(t), w.Load(x, V(t, length) + V(i)),
                                Reduction::kSum))})));
  return w.program;
}

// More groups in dimension 1 than CUDA has there.
loop::Program ManyOuterGroups() {
  constexpr int64_t kOuter = 70000;
  ProgramWriter w;
  const int x = w.Add("x", Scope::kInput, DType::kI8, 2 * kOuter);
  const int y = w.Add("y", Scope::kOutput, DType::kI8, 2 * kOuter);
  const int g1 = w.Var(), g0 = w.Var();
  const Affine at = V(g1, 2) + V(g0);
  w.Kernel(For(g1, kOuter, LoopKind::kGroup,
               For(g0, 2, LoopKind::kGroup, Store(y, at, w.Load(x, at)))));
  return w.program;
}

std::vector<DeviceCase> Maps() {
  const auto number = [](double value, DType dtype = DType::kF32) {
    return loop::Const(value, dtype);
  };
  const DType f32 = DType::kF32, i32 = DType::kI32;
  using Body = std::function<ValuePtr(ValuePtr)>;
  const Body bodies[] = {
      [=](ValuePtr x) {
        return Binary(BinaryOp::kAdd, Binary(BinaryOp::kMul, x, number(3)),
                      number(-5));
      },
      [=](ValuePtr x) {
        return Binary(BinaryOp::kMin, Binary(BinaryOp::kMax, x, number(-2)),
                      number(4));
      },
      [=](ValuePtr x) {
        return loop::Select(Binary(BinaryOp::kLess, x, number(0)),
                            loop::Unary(UnaryOp::kNeg, x),
                            Binary(BinaryOp::kMul, x, x));
      },
      [=](ValuePtr x) {
        return loop::Unary(UnaryOp::kRound,
                           Binary(BinaryOp::kDiv, x, number(2)));
      },
      [=](ValuePtr x) {
        return loop::Unary(UnaryOp::kFloor,
                           Binary(BinaryOp::kMul, x, number(0.375)));
      },
      [=](ValuePtr x) { return loop::Unary(UnaryOp::kAbs, x); },
  };
  std::vector<DeviceCase> cases;
  const std::pair<DType, int64_t> shapes[] = {
      {DType::kF32, 4}, {DType::kF16, 8}, {DType::kBF16, 1}, {DType::kI8, 8}};
  for (const auto& [dtype, lanes] : shapes) {
    std::vector<MapBody> maps;
    for (const Body& body : bodies) {
      maps.push_back({dtype, [&, dtype = dtype](ValuePtr x) {
                        return loop::Cast(body(loop::Cast(std::move(x), f32)),
                                          dtype);
                      }});
    }
    cases.push_back({"Maps_" + std::string(DTypeName(dtype)),
                     MapProgram(lanes == 8 ? 1024 : 301, lanes, dtype, maps)});
  }
  const MapBody wrap = {
      i32, [=](ValuePtr x) {
        const ValuePtr big = Binary(BinaryOp::kMul, x, number(1 << 30, i32));
        return Binary(BinaryOp::kAdd, Binary(BinaryOp::kMul, big, x),
                      Binary(BinaryOp::kSub, number(-2147483648.0, i32),
                             loop::Unary(UnaryOp::kAbs, big)));
      }};
  const MapBody narrow = {DType::kI8, [=](ValuePtr x) {
                            return loop::Cast(
                                Binary(BinaryOp::kMul, x, number(61, i32)),
                                DType::kI8);
                          }};
  cases.push_back({"Integers", MapProgram(77, 4, i32, {wrap, narrow})});
  return cases;
}

}  // namespace

loop::Program MapProgram(int64_t elements, int64_t lanes, DType from,
                         const std::vector<MapBody>& bodies) {
  constexpr int64_t kThreads = 64;
  ProgramWriter w;
  const int x = w.Add("x", Scope::kInput, from, elements);
  const int g = w.Var(), t = w.Var();
  std::vector<StmtPtr> maps;
  for (const MapBody& body : bodies) {
    const int y = w.Add("y", Scope::kOutput, body.to, elements);
    const int i = w.Var();
    const Affine at = V(g, kThreads * lanes) + V(t, lanes) + V(i);
    maps.push_back(
        For(i, lanes, LoopKind::kVector,
            If({{at, elements}}, Store(y, at, body.value(w.Load(x, at))))));
  }
  const int64_t groups = (elements + kThreads * lanes - 1) / (kThreads * lanes);
  w.Kernel(For(g, groups, LoopKind::kGroup,
               For(t, kThreads, LoopKind::kThread, Block(std::move(maps)))));
  return w.program;
}

const std::vector<DeviceCase>& DeviceCases() {
  static const std::vector<DeviceCase>& cases = *[] {
    auto* list = new std::vector<DeviceCase>(Maps());
    const auto add = [&](const std::string& name, loop::Program program) {
      list->push_back({name, std::move(program)});
    };
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      const std::string type(DTypeName(dtype));
      add("Matmul_" + type,
          TiledMatmul{.m = 32, .n = 32, .k = 16, .dtype = dtype}.Emit());
      add("RaggedMatmul_" + type,
          TiledMatmul{.m = 19, .n = 23, .k = 13, .dtype = dtype}.Emit());
      add("Transpose_" + type, Transpose(21, 16, dtype));
    }
    add("Matmul_f16_f16",
        TiledMatmul{
            .m = 17, .n = 32, .k = 8, .dtype = DType::kF16, .out = DType::kF16}
            .Emit());
    add("Matmul_i8", TiledMatmul{.m = 19,
                                 .n = 40,
                                 .k = 13,
                                 .bm = 8,
                                 .bn = 32,
                                 .bk = 4,
                                 .rm = 4,
                                 .rn = 8,
                                 .dtype = DType::kI8,
                                 .out = DType::kI32}
                         .Emit());
    add("Transpose_i8", Transpose(16, 24, DType::kI8));
    add("RowSums", RowSums(5, 37, Reduction::kSum, DType::kF32));
    add("RowSums_i32", RowSums(5, 37, Reduction::kSum, DType::kI32));
    add("RowMaxima", RowSums(3, 16, Reduction::kMax, DType::kF32));
    add("RowMinima_i32", RowSums(3, 50, Reduction::kMin, DType::kI32));
    add("ThreeKernels", ThreeKernels());
    add("AcrossLanes7", AcrossLanes(7, DType::kF32));
    add("AcrossLanes16_i32", AcrossLanes(16, DType::kI32));
    add("ManyOuterGroups", ManyOuterGroups());
    return list;
  }();
  return cases;
}

void ExpectExact(const loop::Program& program, const Module& module,
                 const DeviceRunner& run) {
  const std::vector<TensorValues> inputs = WholeNumbers(program, 11);
  const LoopRun expected = RunLoops(program, inputs);
  ASSERT_EQ(expected.race, "");
  const std::vector<TensorValues> outputs = run(module, inputs);
  ASSERT_EQ(outputs.size(), expected.outputs.size());
  for (size_t o = 0; o < outputs.size(); ++o) {
    ASSERT_EQ(outputs[o].size(), expected.outputs[o].size());
    for (size_t i = 0; i < outputs[o].size(); ++i) {
      ASSERT_EQ(outputs[o][i], expected.outputs[o][i])
          << "element " << i << " of output " << o << "\n"
          << loop::ToString(program);
    }
  }
}

}  // namespace regatta
