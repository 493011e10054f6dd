--  Tasks, checks that raise, a fault that is an exception.
with Ada.Text_IO; use Ada.Text_IO;
with Ada.Command_Line; use Ada.Command_Line;

procedure Main is
   type Numbers is array (1 .. 10) of Integer;
   Squares : Numbers := (others => 1);
   Last : Integer := 10 + Argument_Count;
   Nothing : access Integer := null;

   protected Sum is
      procedure Add (Value : Integer);
      function Get return Integer;
   private
      Total : Integer := 0;
   end Sum;

   protected body Sum is
      procedure Add (Value : Integer) is
      begin
         Total := Total + Value;
      end Add;
      function Get return Integer is (Total);
   end Sum;
begin
   for K in 1 .. Last loop
      Squares (K) := K * K;
   end loop;
   declare
      task type Worker;
      task body Worker is
      begin
         for K in 1 .. 100 loop
            Sum.Add (K);
         end loop;
      end Worker;
      Workers : array (1 .. 5) of Worker;
      pragma Unreferenced (Workers);
   begin
      null;
   end;
   Put_Line (Integer'Image (Squares (Last)) & Integer'Image (Sum.Get));
   begin
      Last := Squares (Last + 1);
   exception
      when Constraint_Error => Put_Line ("out of range");
   end;
   begin
      Nothing.all := Last;
   exception
      when Constraint_Error => Put_Line ("nothing there");
   end;
   Set_Exit_Status (4);
end Main;
