// Addresses, loads and stores of the kernel emitter; register buffers are in
// kernel_registers.cc.
//
// A load goes to the outermost loop that it does not depend on (no bounds are
// data-dependent, so every load that is written runs at least once), and equal
// loads without a store between them are one.
#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/codegen/llvm/kernel_emitter.h"
#include "llvm/ADT/APFloat.h"

namespace regatta::cpu {
namespace {

// More values than this live across a loop would only be spilled.
constexpr int kMaxHoisted = 24;

// Elements of a pad constant in memory; no vector has more.
constexpr int kPadElements = 64;

llvm::Constant* MemoryNumber(double value, DType dtype,
                             llvm::LLVMContext& context) {
  if (dtype != DType::kF16 && dtype != DType::kBF16) {
    return Number(value, dtype, context);
  }
  llvm::APFloat number(value);
  bool loses = false;
  number.convert(dtype == DType::kF16 ? llvm::APFloat::IEEEhalf()
                                      : llvm::APFloat::BFloat(),
                 llvm::APFloat::rmNearestTiesToEven, &loses);
  return llvm::ConstantInt::get(context, number.bitcastToAPInt());
}

llvm::Align ElementAlign(DType dtype) { return llvm::Align(DTypeBytes(dtype)); }

}  // namespace

KernelEmitter::Form KernelEmitter::Resolve(const Affine& form) const {
  Form resolved;
  resolved.constant = form.constant();
  for (const Affine::Term& term : form.terms()) {
    const Binding& binding = vars_.at(term.var);
    resolved.constant += term.coeff * binding.constant;
    if (binding.level >= 0) {
      resolved.terms.emplace_back(binding.level, term.coeff);
    }
    if (lanes_.width > 1 && term.var == lanes_.var) resolved.lane = term.coeff;
  }
  std::sort(resolved.terms.begin(), resolved.terms.end());
  return resolved;
}

std::vector<KernelEmitter::FormGuard> KernelEmitter::ResolveGuards(
    const std::vector<loop::Guard>& guards) {
  std::vector<FormGuard> resolved;
  for (const loop::Guard& guard : guards) {
    FormGuard g{Resolve(guard.form), guard.bound};
    // Without loops around it, a guard is decided here.
    const bool decided = g.form.terms.empty() && g.form.lane == 0;
    const bool holds = g.form.constant >= 0 && g.form.constant < g.bound;
    if (!decided || !holds) resolved.push_back(std::move(g));
  }
  return resolved;
}

int KernelEmitter::LevelOf(const Form& form) const {
  return form.terms.empty() ? 0 : form.terms.back().first;
}

// Base, plus index times stride level by level; every partial sum is shared and
// stands at the top of its loop. The constant is left to addressing modes.
llvm::Value* KernelEmitter::Address(int id, const Form& form) {
  const int64_t bytes = DTypeBytes(buffer(id).dtype);
  llvm::Value* pointer = bases_.at(id);
  Form prefix;
  for (const auto& [depth, coeff] : form.terms) {
    prefix.terms.emplace_back(depth, coeff);
    Level& level = levels_[depth];
    llvm::Value*& address = level.addresses[{id, prefix}];
    if (address == nullptr) {
      Builder::InsertPointGuard guard(b_);
      b_.SetInsertPoint(level.anchor);
      address = b_.CreatePtrAdd(
          pointer, b_.CreateMul(level.index, b_.getInt64(coeff * bytes)));
    }
    pointer = address;
  }
  if (form.constant == 0) return pointer;
  return b_.CreatePtrAdd(pointer, b_.getInt64(form.constant * bytes));
}

llvm::Value* KernelEmitter::IndexValue(const Form& form) {
  Form key = form;
  key.lane = 0;
  if (key.terms.empty()) return b_.getInt64(key.constant);
  Level& level = levels_[LevelOf(key)];
  llvm::Value*& value = level.indices[key];
  if (value != nullptr) return value;
  Builder::InsertPointGuard guard(b_);
  b_.SetInsertPoint(level.anchor);
  llvm::Value* sum = b_.getInt64(key.constant);
  for (const auto& [depth, coeff] : key.terms) {
    sum = b_.CreateAdd(sum,
                       b_.CreateMul(levels_[depth].index, b_.getInt64(coeff)));
  }
  value = sum;
  return value;
}

// 0 <= form < bound in one unsigned comparison.
llvm::Value* KernelEmitter::ScalarCondition(const FormGuard& guard) {
  Level& level = levels_[LevelOf(guard.form)];
  llvm::Value*& condition = level.conditions[{guard, 1}];
  if (condition != nullptr) return condition;
  llvm::Value* index = IndexValue(guard.form);
  Builder::InsertPointGuard insert(b_);
  b_.SetInsertPoint(level.anchor);
  condition = b_.CreateICmpULT(index, b_.getInt64(guard.bound));
  return condition;
}

llvm::Constant* KernelEmitter::LaneSteps(llvm::Type* integer,
                                         int64_t step) const {
  std::vector<llvm::Constant*> steps;
  for (int i = 0; i < lanes_.width; ++i) {
    steps.push_back(llvm::ConstantInt::get(integer, step * i, true));
  }
  return llvm::ConstantVector::get(steps);
}

llvm::Value* KernelEmitter::LaneCondition(const FormGuard& guard) {
  if (guard.form.lane == 0) {
    return b_.CreateVectorSplat(lanes_.width, ScalarCondition(guard));
  }
  Level& level = levels_[LevelOf(guard.form)];
  llvm::Value*& condition = level.conditions[{guard, lanes_.width}];
  if (condition != nullptr) return condition;
  llvm::Value* index = IndexValue(guard.form);
  Builder::InsertPointGuard insert(b_);
  b_.SetInsertPoint(level.anchor);
  // Subscripts fit 32 bits in all but absurd shapes; lanes are then as wide as
  // floats.
  llvm::Type* type =
      guard.bound < (int64_t{1} << 30) ? b_.getInt32Ty() : b_.getInt64Ty();
  llvm::Value* lanes = b_.CreateAdd(
      b_.CreateVectorSplat(lanes_.width, b_.CreateTrunc(index, type)),
      LaneSteps(type, guard.form.lane));
  condition = b_.CreateICmpULT(
      lanes, b_.CreateVectorSplat(lanes_.width,
                                  llvm::ConstantInt::get(type, guard.bound)));
  return condition;
}

// Null when all are active.
llvm::Constant* KernelEmitter::ActiveLanes() const {
  if (lanes_.count == lanes_.width) return nullptr;
  llvm::Type* bit = llvm::Type::getInt1Ty(state_.module.getContext());
  std::vector<llvm::Constant*> lanes;
  for (int i = 0; i < lanes_.width; ++i) {
    lanes.push_back(llvm::ConstantInt::get(bit, i < lanes_.count));
  }
  return llvm::ConstantVector::get(lanes);
}

KernelEmitter::Val KernelEmitter::Load(const loop::Value& load) {
  LoadKey key{load.buffer,
              Resolve(load.offset),
              lanes_.count,
              lanes_.width,
              ResolveGuards(load.guards),
              std::bit_cast<uint64_t>(load.constant)};
  for (const FormGuard& guard : key.guards) {
    const bool decided = guard.form.terms.empty() && guard.form.lane == 0;
    if (decided) {  // fails, or it would not be here
      return {Number(load.constant, load.dtype, context()), false};
    }
  }
  const bool in_slot = buffer(load.buffer).scope == loop::Scope::kRegister &&
                       bases_.count(load.buffer) == 0;
  if (in_slot) return LoadRegister(load.buffer, key.form);

  const bool uniform =
      key.form.lane == 0 &&
      std::none_of(key.guards.begin(), key.guards.end(),
                   [](const FormGuard& g) { return g.form.lane != 0; });
  if (uniform) key.count = key.width = 1;
  return LoadOnce(std::move(key), load.constant);
}

// At the outermost place where it can stand, or the value of an equal load.
KernelEmitter::Val KernelEmitter::LoadOnce(LoadKey key, double pad) {
  int depth = LevelOf(key.form);
  for (const FormGuard& guard : key.guards) {
    depth = std::max(depth, LevelOf(guard.form));
  }
  const int current = static_cast<int>(levels_.size()) - 1;
  for (int i = current; i > depth; --i) {
    if (levels_[i].stored.count(key.buffer)) depth = i;
  }
  for (int i = depth; i <= current; ++i) {
    const auto found = levels_[i].loads.find(key);
    if (found != levels_[i].loads.end()) return found->second;
  }
  if (depth < current && levels_[depth + 1].hoisted >= kMaxHoisted) {
    depth = current;
  }
  Val value;
  if (depth == current) {
    value = LoadAt(key, pad);
  } else {
    ++levels_[depth + 1].hoisted;
    Builder::InsertPointGuard guard(b_);
    b_.SetInsertPoint(levels_[depth + 1].preheader);
    value = LoadAt(key, pad);
  }
  levels_[depth].loads[key] = value;
  return value;
}

KernelEmitter::Val KernelEmitter::LoadAt(const LoadKey& key, double pad) {
  const DType dtype = buffer(key.buffer).dtype;
  llvm::Value* address = Address(key.buffer, key.form);
  if (key.as == LoadKey::As::kWord) {
    const int bits = static_cast<int>(8 * DTypeBytes(dtype) * key.count);
    return {
        b_.CreateAlignedLoad(b_.getIntNTy(bits), address, ElementAlign(dtype)),
        false};
  }
  llvm::Value* raw = key.width == 1 ? LoadScalar(key, address, pad)
                                    : LoadVector(key, address, pad);
  if (key.as == LoadKey::As::kMemory) return {raw, key.width > 1};
  return {FromMemory(b_, state_.traits, raw, dtype), key.width > 1};
}

// `pad` where a guard fails: the address is exchanged, so there is no branch
// and no other memory is touched.
llvm::Value* KernelEmitter::LoadScalar(const LoadKey& key, llvm::Value* address,
                                       double pad) {
  const DType dtype = buffer(key.buffer).dtype;
  for (const FormGuard& guard : key.guards) {
    address = b_.CreateSelect(ScalarCondition(guard), address,
                              PadAddress(dtype, pad));
  }
  return b_.CreateAlignedLoad(MemoryType(dtype, context()), address,
                              ElementAlign(dtype));
}

llvm::Value* KernelEmitter::LoadVector(const LoadKey& key, llvm::Value* address,
                                       double pad) {
  const DType dtype = buffer(key.buffer).dtype;
  llvm::Type* scalar = MemoryType(dtype, context());
  auto* type = llvm::FixedVectorType::get(scalar, key.width);
  llvm::Value* mask = ActiveLanes();
  for (const FormGuard& guard : key.guards) {
    if (guard.form.lane == 0) {
      // All or nothing. The pad has room for any vector, not for any stride.
      if (key.form.lane == 1) {
        address = b_.CreateSelect(ScalarCondition(guard), address,
                                  PadAddress(dtype, pad));
        continue;
      }
    }
    llvm::Value* condition = LaneCondition(guard);
    mask = mask == nullptr ? condition : b_.CreateAnd(mask, condition);
  }
  llvm::Constant* fill =
      llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(key.width),
                                     MemoryNumber(pad, dtype, context()));
  if (key.form.lane != 1) return LoadStrided(key, address, mask, fill);
  if (mask == nullptr) {
    return b_.CreateAlignedLoad(type, address, ElementAlign(dtype));
  }
  return b_.CreateMaskedLoad(type, address, ElementAlign(dtype), mask, fill);
}

llvm::Value* KernelEmitter::LoadStrided(const LoadKey& key,
                                        llvm::Value* address, llvm::Value* mask,
                                        llvm::Value* pad) {
  const DType dtype = buffer(key.buffer).dtype;
  const int64_t bytes = DTypeBytes(dtype);
  llvm::Type* scalar = MemoryType(dtype, context());
  const int width = key.width;
  auto* type = llvm::FixedVectorType::get(scalar, width);
  const int64_t step = key.form.lane;
  const auto load_from = [&](int64_t element) {
    return b_.CreateAlignedLoad(
        type, b_.CreatePtrAdd(address, b_.getInt64(element * bytes)),
        ElementAlign(dtype));
  };
  if (mask == nullptr && step == -1) {
    return b_.CreateVectorReverse(load_from(1 - width));
  }
  if (mask == nullptr && step == 2) {
    // Elements 0, 2, ...: from the first `width` elements, then from the last.
    std::vector<int> pick;
    for (int i = 0; i < width; ++i) {
      pick.push_back(2 * i < width ? 2 * i : 2 * i - (width - 1) + width);
    }
    return b_.CreateShuffleVector(load_from(0), load_from(width - 1), pick);
  }
  const bool small = std::abs(step) * bytes * width < (int64_t{1} << 31);
  llvm::Type* integer = small ? b_.getInt32Ty() : b_.getInt64Ty();
  llvm::Value* addresses =
      b_.CreateGEP(b_.getInt8Ty(), address, LaneSteps(integer, step * bytes));
  if (mask == nullptr) {
    mask = llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(width),
                                          b_.getTrue());
  }
  return b_.CreateMaskedGather(type, addresses, ElementAlign(dtype), mask, pad);
}

llvm::Value* KernelEmitter::PadAddress(DType dtype, double pad) {
  llvm::Constant* element = MemoryNumber(pad, dtype, context());
  const std::string name =
      absl::StrCat(state_.name, "_pad_", std::string(DTypeName(dtype)), "_",
                   absl::Hex(std::bit_cast<uint64_t>(pad)));
  llvm::GlobalVariable* global = state_.module.getNamedGlobal(name);
  if (global != nullptr) return global;
  std::vector<llvm::Constant*> elements(kPadElements, element);
  auto* type = llvm::ArrayType::get(element->getType(), kPadElements);
  global = new llvm::GlobalVariable(
      state_.module, type, true, llvm::GlobalVariable::InternalLinkage,
      llvm::ConstantArray::get(type, elements), name);
  global->setAlignment(llvm::Align(64));
  return global;
}

void KernelEmitter::StoreTo(int id, const Form& form, Val value,
                            bool streaming) {
  const bool in_slot =
      buffer(id).scope == loop::Scope::kRegister && bases_.count(id) == 0;
  if (in_slot) {
    StoreRegister(id, form, value);
  } else {
    StoreMemory(id, form, value, streaming);
  }
}

void KernelEmitter::StoreMemory(int id, const Form& form, Val value,
                                bool streaming) {
  const DType dtype = buffer(id).dtype;
  const bool one = lanes_.width == 1 || form.lane == 0;
  if (one && value.vector) {  // the last iteration's value stays
    value = {b_.CreateExtractElement(value.value, lanes_.count - 1), false};
  }
  Forget(id, form);
  LoadKey key{id, form, lanes_.count, lanes_.width, {}, 0};
  if (one) key.count = key.width = 1;
  if (!one) value = {ToVector(value), true};
  llvm::Value* raw = ToMemory(b_, state_.traits, value.value, dtype);
  llvm::Value* address = Address(id, form);
  llvm::Value* mask = ActiveLanes();
  if (streaming && !one && form.lane == 1 && mask == nullptr) {
    StoreStreaming(raw, address, ElementAlign(dtype));
  } else if (one || (form.lane == 1 && mask == nullptr)) {
    b_.CreateAlignedStore(raw, address, ElementAlign(dtype));
  } else if (form.lane == 1) {
    b_.CreateMaskedStore(raw, address, ElementAlign(dtype), mask);
  } else {
    for (int i = 0; i < lanes_.count; ++i) {
      llvm::Value* place = b_.CreatePtrAdd(
          address, b_.getInt64(form.lane * i * DTypeBytes(dtype)));
      b_.CreateAlignedStore(b_.CreateExtractElement(raw, i), place,
                            ElementAlign(dtype));
    }
  }
  // What was stored is what a load finds, unless storing rounded it.
  if (raw == value.value) levels_.back().loads[key] = value;
}

// Where addresses must be aligned, nobody promises it: an ordinary store is the
// other branch. Which one runs rarely changes within a row.
void KernelEmitter::StoreStreaming(llvm::Value* vector, llvm::Value* address,
                                   llvm::Align element) {
  const auto hint = [&](llvm::StoreInst* store) {
    store->setMetadata(
        llvm::LLVMContext::MD_nontemporal,
        llvm::MDNode::get(context(),
                          llvm::ConstantAsMetadata::get(b_.getInt32(1))));
  };
  streamed_ = true;
  if (!state_.traits.aligned_streams) {
    hint(b_.CreateAlignedStore(vector, address, element));
    return;
  }
  const uint64_t bytes = state_.module.getDataLayout()
                             .getTypeStoreSize(vector->getType())
                             .getFixedValue();
  // Narrower ones are not instructions.
  if (bytes < 16) {
    b_.CreateAlignedStore(vector, address, element);
    return;
  }
  auto* aligned = llvm::BasicBlock::Create(context(), "aligned", function_);
  auto* other = llvm::BasicBlock::Create(context(), "unaligned", function_);
  auto* after = llvm::BasicBlock::Create(context(), "stored", function_);
  llvm::Value* below = b_.CreateAnd(b_.CreatePtrToInt(address, b_.getInt64Ty()),
                                    b_.getInt64(bytes - 1));
  b_.CreateCondBr(b_.CreateICmpEQ(below, b_.getInt64(0)), aligned, other);
  b_.SetInsertPoint(aligned);
  hint(b_.CreateAlignedStore(vector, address, llvm::Align(bytes)));
  b_.CreateBr(after);
  b_.SetInsertPoint(other);
  b_.CreateAlignedStore(vector, address, element);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

// Drops remembered loads that the store may have changed.
void KernelEmitter::Forget(int id, const Form& form) {
  const auto span = [](const Form& f, int count) {
    const int64_t last = f.constant + f.lane * (count - 1);
    return std::pair(std::min(f.constant, last), std::max(f.constant, last));
  };
  const auto stored = span(form, lanes_.count);
  for (Level& level : levels_) {
    std::erase_if(level.loads, [&](const auto& entry) {
      const LoadKey& key = entry.first;
      if (key.buffer != id) return false;
      if (key.form.terms != form.terms) return true;
      const auto loaded = span(key.form, key.count);
      return loaded.first <= stored.second && stored.first <= loaded.second;
    });
  }
}

}  // namespace regatta::cpu
