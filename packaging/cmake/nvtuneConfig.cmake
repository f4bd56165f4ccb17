# find_package(nvtune) and nvtune_enable(TARGET...): the kernels of these targets are built through nvtune.
#
# In: NVTUNE_EXECUTABLE, or nvtune below the prefix of this file or on PATH. Out: nvtune_enable, NVTUNE_EXECUTABLE.
# Without nvtune and without REQUIRED, nvtune_enable does nothing: the targets are built by nvcc alone.

include(FindPackageHandleStandardArgs)
find_program(NVTUNE_EXECUTABLE nvtune
  HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../bin"
  DOC "nvtune, which tunes the kernels that are marked with //@tune")
mark_as_advanced(NVTUNE_EXECUTABLE)
find_package_handle_standard_args(nvtune REQUIRED_VARS NVTUNE_EXECUTABLE)

# Builds the CUDA sources of targets through nvtune. nvtune starts the launcher that a target has already, such as ccache.
function(nvtune_enable)
  if(NOT NVTUNE_EXECUTABLE)
    return()
  endif()
  foreach(target IN LISTS ARGN)
    if(NOT TARGET "${target}")
      message(FATAL_ERROR "nvtune_enable: there is no target ${target}")
    endif()
    get_target_property(launcher "${target}" CUDA_COMPILER_LAUNCHER)
    if(NOT launcher)
      set(launcher "")
    endif()
    if(NOT NVTUNE_EXECUTABLE IN_LIST launcher)
      set_property(TARGET "${target}" PROPERTY CUDA_COMPILER_LAUNCHER "${NVTUNE_EXECUTABLE}" ${launcher})
    endif()
  endforeach()
endfunction()
