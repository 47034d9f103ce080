# Code for devices, run. Needs an OpenCL device: PoCL is one on any processor.
regatta_test(compiler_opencl_test
  codegen_support.cc
  device_cases.cc
  device_code_checks.cc
  device_programs.cc
  device_support.cc
  module_support.cc
  opencl_code_test.cc
  opencl_run.cc
  operator_shapes.cc
  schedule_sweep.cc
  ../support/loop_interpreter.cc
  ../support/race_detector.cc
  ../support/warp_matrices.cc
  LIBS regatta_compiler regatta_codegen regatta_run TIMEOUT 300)
# Under Oclgrind, which is the only OpenCL of its process.
regatta_test(compiler_oclgrind_test
  codegen_support.cc
  device_cases.cc
  device_programs.cc
  device_support.cc
  module_support.cc
  oclgrind_run.cc
  oclgrind_test.cc
  operator_shapes.cc
  schedule_sweep.cc
  ../support/loop_interpreter.cc
  ../support/race_detector.cc
  ../support/warp_matrices.cc
  LIBS regatta_compiler regatta_codegen regatta_run TIMEOUT 300)
# Needs NVRTC of a CUDA toolkit; no GPU.
regatta_test(compiler_cuda_test
  codegen_support.cc
  cuda_code_test.cc
  cuda_matrix_test.cc
  cuda_run.cc
  device_cases.cc
  device_code_checks.cc
  device_programs.cc
  device_support.cc
  module_support.cc
  operator_shapes.cc
  schedule_sweep.cc
  ../support/loop_interpreter.cc
  ../support/race_detector.cc
  ../support/simulated_module.cc
  ../support/warp_matrices.cc
  LIBS regatta_compiler regatta_codegen regatta_ptxsim TIMEOUT 300)
# A target that is added here alone: its lists stand in for the compiler's.
regatta_test(compiler_plain_c_test
  codegen_support.cc
  device_cases.cc
  device_code_checks.cc
  device_programs.cc
  device_support.cc
  module_support.cc
  operator_shapes.cc
  plain_c/plain_c_code_generator.cc
  plain_c/plain_c_dialect.cc
  plain_c/plain_c_lists.cc
  plain_c/plain_c_test.cc
  schedule_sweep.cc
  ../support/loop_interpreter.cc
  ../support/process.cc
  ../support/race_detector.cc
  ../support/warp_matrices.cc
  LIBS regatta_compiler regatta_codegen)
target_compile_definitions(compiler_plain_c_test PRIVATE
  "REGATTA_C_COMPILER=\"${CMAKE_C_COMPILER}\"")
