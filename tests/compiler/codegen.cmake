# Loops and the code generators: hand-written loops run against plain C++,
# modules inspected, schedules run against the interpreter.
regatta_test(compiler_codegen_test
  arm_program.cc
  codegen_arm_sweep_test.cc
  codegen_arm_test.cc
  codegen_c_program_test.cc
  codegen_loops_test.cc
  codegen_math_test.cc
  codegen_module_test.cc
  codegen_operators_test.cc
  codegen_parallel_test.cc
  codegen_schedule_test.cc
  codegen_support.cc
  cuda_source_test.cc
  device_cases.cc
  device_loops_test.cc
  device_programs.cc
  device_support.cc
  loop_ir_test.cc
  module_support.cc
  nvrtc_choice_test.cc
  opencl_source_test.cc
  operator_shapes.cc
  schedule_sweep.cc
  ../support/loop_interpreter.cc
  ../support/race_detector.cc
  ../support/warp_matrices.cc
  LIBS regatta_compiler regatta_codegen TIMEOUT 300)
set_source_files_properties(codegen_c_program_test.cc codegen_module_test.cc
  PROPERTIES
  COMPILE_DEFINITIONS "REGATTA_C_COMPILER=\"${CMAKE_C_COMPILER}\"")

# Stands where a toolkit of CUDA 12 would have its compiler.
add_library(fake_nvrtc MODULE fake_nvrtc.c)
set_target_properties(fake_nvrtc PROPERTIES PREFIX "" OUTPUT_NAME libnvrtc
  SUFFIX .so.12 LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/cuda/lib64)
target_compile_options(fake_nvrtc PRIVATE -fno-sanitize=all)
target_link_options(fake_nvrtc PRIVATE -fno-sanitize=all)
target_compile_definitions(compiler_codegen_test PRIVATE
  REGATTA_FAKE_CUDA="${CMAKE_CURRENT_BINARY_DIR}/cuda"
  REGATTA_BROKEN_CUDA="${CMAKE_CURRENT_BINARY_DIR}/broken_cuda")
# One that never starts.
add_library(broken_nvrtc MODULE fake_nvrtc.c)
set_target_properties(broken_nvrtc PROPERTIES PREFIX "" OUTPUT_NAME libnvrtc
  SUFFIX .so.12
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/broken_cuda/lib64)
target_compile_definitions(broken_nvrtc PRIVATE BROKEN)
target_compile_options(broken_nvrtc PRIVATE -fno-sanitize=all)
target_link_options(broken_nvrtc PRIVATE -fno-sanitize=all)
add_dependencies(compiler_codegen_test fake_nvrtc broken_nvrtc)
